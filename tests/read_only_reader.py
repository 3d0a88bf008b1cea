"""Read a lake as a process that cannot write it, and try to change it: TARGET [UID], prints JSON."""

import json
import os
import pkgutil
import sys
from importlib import import_module

import pyarrow as pa

import icefield
from icefield.cli.main import run
from icefield.errors import IcefieldError


def load_everything() -> None:
    """Import every module that works without Spark, and what is loaded by first reads and writes."""
    for module in pkgutil.walk_packages(icefield.__path__, "icefield."):
        if not module.name.startswith(("icefield.spark", "icefield.__main__", "icefield.codec.avro.kernel-")):
            import_module(module.name)
    warm = icefield.connect("memory:").create_table("a.t", "id long")
    warm.append(pa.table({"id": [1]}))
    warm.scan("id = 1").to_arrow().read_all()
    run(["--help"])


def main(target: str, uid: int | None) -> None:
    load_everything()  # the other user may not be allowed to read Python's own files
    if uid is not None:
        os.setgroups([])
        os.setgid(uid)
        os.setuid(uid)
    with icefield.connect(target) as lake:
        table = lake.table("a.t")
        found = {
            "tables": lake.tables(),
            "views": lake.views(),
            "namespaces": lake.namespaces(),
            "rows": sorted(table.scan().to_arrow().read_all().column("id").to_pylist()),
            "filtered": table.scan("id > 1").count(),
            "snapshots": len(table.metadata.snapshots),
            "files": table.inspect("files").to_arrow().read_all().num_rows,
            "planned": [plan(lake, table) for plan in DRY_RUNS],
            "refused": [_refusal(change, lake, table) for change in CHANGES],
        }
    print(json.dumps(found))
    reads = (["tables"], ["count", "a.t"], ["describe", "a.t"], ["snapshots", "a.t"], ["tree", "a.t"])
    plans = (
        ["upkeep", "plan"],
        ["report"],
        ["orphans", "a.t", "--dry-run", "--unsafe"],
        ["compact", "a.t", "--dry-run"],
    )
    for command in (*reads, *plans):
        assert run(["--lake", target, "--json", *command]) == 0, command


def _refusal(change: object, lake: object, table: object) -> str:
    try:
        change(lake, table)  # type: ignore[operator]
    except IcefieldError as error:
        return str(error)
    return "it was changed"


DRY_RUNS = (
    lambda lake, table: f"{len(table.expire_snapshots('2100-01-01', dry_run=True).snapshot_ids)} expired",
    lambda lake, table: f"{table.remove_orphans(dry_run=True, unsafe=True).files_marked} orphans",
    lambda lake, table: f"{table.sweep(dry_run=True).files_deleted} swept",
    lambda lake, table: f"{table.forget('id = 1', dry_run=True).files} forgotten",
    lambda lake, table: lake.upkeep(dry_run=True).tables[0].error,
)
CHANGES = (
    lambda lake, table: table.append(pa.table({"id": [9]})),
    lambda lake, table: table.set_properties({"a": "b"}),
    lambda lake, table: lake.create_table("a.new", "id long"),
    lambda lake, table: lake.create_namespace("new"),
    lambda lake, table: lake.drop_table("a.t"),
    lambda lake, table: lake.rename_table("a.t", "a.u"),
)

if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else None)
