"""A dry run of every verb that rewrites files stores nothing, and says what the run then does, on both engines."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from icefield.engine.choose import EngineName
from icefield.lake import Lake
from icefield.table.table import Table

Did = Mapping[str, object]


def _compact(**how: Any) -> Callable[..., Did]:
    def run(table: Table, **options: Any) -> Did:
        return table.compact(**how, **options).as_dict()

    return run


def _convert(table: Table, **options: Any) -> Did:
    made = table.convert_equality_deletes(**options)
    assert made is not None
    return {key: value for key, value in made.summary.items() if "size" not in key}


# What a dry run does not know: names and sizes of new files, and what was done.
UNKNOWN = {
    *("snapshot-ids", "is-dry-run", "engine", "seconds", "swept", "search", "is-finished"),
    *("groups-done", "files-removed", "bytes-removed", "files-added", "bytes-added"),
    *("removed-delete-files", "added-delete-files", "removed-position-deletes", "added-position-deletes"),
}
VERBS: dict[str, Callable[..., Did]] = {
    "bin-pack": _compact(),
    "sort": _compact(strategy="sort", order_by=["n desc"]),
    "cluster": _compact(cluster_by=["id", "n"]),
    "rewrite all": _compact(options={"rewrite-all": "true"}),
    "rewrite deletes": lambda table, **options: table.rewrite_deletes(**options).as_dict(),
    "convert deletes": _convert,
    "forget": lambda table, **options: table.forget("n = 3", **options).as_dict(),
}
OF_VERSION_2 = ("rewrite deletes", "convert deletes")  # delete files, where version 3 has deletion vectors


@pytest.mark.every_case
@pytest.mark.parametrize(("verb", "version"), [*((verb, 3) for verb in VERBS), *((verb, 2) for verb in OF_VERSION_2)])
def test_a_dry_run_stores_nothing_and_predicts_the_run(
    lake: Lake, tmp_path: Path, engine: EngineName, verb: str, version: int
) -> None:
    table = make(lake, version)
    before = stored(tmp_path)
    planned = VERBS[verb](table, engine=engine, dry_run=True)
    assert stored(tmp_path) == before
    done = VERBS[verb](table, engine=engine)
    assert known(planned) == known(done)
    assert stored(tmp_path) - before, "the run did something"


def known(did: Did) -> Did:
    return {key: value for key, value in did.items() if key not in UNKNOWN}


def make(lake: Lake, version: int) -> Table:
    """Two partitions of an older spec, with deletes of every kind that the format version has."""
    table = lake.create_table("t.t", "id long, p string, n long", partition_by=["p"], format_version=version)
    for start in range(0, 24, 6):
        table.append(rows(range(start, start + 6)))
    table.delete("id in (1, 8)", mode="merge-on-read")
    table.delete("id = 3", mode="merge-on-read")
    with table.evolve() as change:
        change.add_partition_field("bucket(2, id)")
    table.append(rows(range(24, 30)))
    table.upsert(rows([4, 25]), on=["id"], mode="equality")
    return table


def rows(ids: Any) -> pa.Table:
    return pa.table({"id": list(ids), "p": ["ab"[i % 2] for i in ids], "n": [i % 5 for i in ids]})


def stored(root: Path) -> set[Path]:
    return {path for path in root.rglob("*") if path.is_file() and "catalog.db" not in path.name}
