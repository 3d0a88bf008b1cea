"""Small work on a local disk: appends of 10 rows, a delete in each of 50 files, a read of 100 one-row files, a plan.

    python -m benchmarks small_work

CPU time by icefield, PyIceberg and, if they are installed, delta-rs (`deltalake`) and DuckLake (the package
`duckdb-extension-ducklake` in the version of duckdb, without inlining small appends in its catalog): the
best of some rounds that take turns, and the ratio to icefield. Nobody waits for the disk: icefield runs with
`durable=False`, as the others never call fsync.
"""

import tempfile
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from time import process_time
from typing import Any

import duckdb
import pyarrow as pa
from pyiceberg.catalog.sql import SqlCatalog

import icefield

ROUNDS = 3
FILES = 50
READ = 100
PLANNED = 12
NAMES = ("appends", "read", "plan")
SCHEMA = pa.schema([("id", pa.int64()), ("amount", pa.float64())])
Work = dict[str, Callable[[], object]]


def run() -> None:
    """Print CPU ms of each work."""
    best: dict[tuple[str, str], float] = {}
    for _ in range(ROUNDS):
        for who, open_peer in PEERS.items():
            with tempfile.TemporaryDirectory() as name:
                for what, work in open_peer(Path(name)).items():
                    key = (what, who)
                    best[key] = min(best.get(key, float("inf")), _cpu_ms(work))
    for what in dict.fromkeys(what for what, _ in best):
        mine = best[what, "icefield"]
        others = "".join(
            f"   {who} {ms:.1f} ({ms / mine:.2f})"
            for (work, who), ms in best.items()
            if work == what and who != "icefield"
        )
        print(f"{what:38} icefield {mine:.1f} ms{others}")


def _rows(first: int, count: int) -> pa.Table:
    return pa.table({"id": range(first, first + count), "amount": [1.5] * count}, schema=SCHEMA)


def _works(
    append: Callable[[str, pa.Table], object],
    delete: Callable[[str], object],
    read: Callable[[str], object],
    plan: Callable[[str], object],
) -> Work:
    """Name the works in their order: tables `appends`, `read` and `plan` exist. plan: by a new handle, of all files."""
    append("appends", _rows(0, 10))
    for name, files in (("read", READ), ("plan", PLANNED)):
        for at in range(files):
            append(name, _rows(at, 1))
    return {
        f"cold plan of {PLANNED} files": lambda: plan("plan"),
        f"{FILES} appends of 10 rows": lambda: [append("appends", _rows(10 * at, 10)) for at in range(FILES)],
        f"delete of a row in {FILES} files": lambda: delete("appends"),
        f"read of {READ} one-row files": lambda: read("read"),
        "the same again": lambda: read("read"),
    }


def _icefield(directory: Path) -> Work:
    lake = icefield.connect(directory / "lake", durable=False)
    tables = {}
    for name in NAMES:
        properties = {"write.delete.mode": "copy-on-write"}
        tables[name] = lake.create_table(f"a.{name}", "id long, amount double", properties=properties)
    return _works(
        lambda name, rows: tables[name].append(rows),
        lambda name: tables[name].delete("id % 10 = 3"),
        lambda name: tables[name].scan().to_arrow().read_all(),
        lambda name: icefield.connect(directory / "lake", durable=False).table(f"a.{name}").scan().files(),
    )


def _pyiceberg(directory: Path) -> Work:
    catalog = SqlCatalog("a", uri=f"sqlite:///{directory}/catalog.db", warehouse=directory.as_uri())
    catalog.create_namespace("a")
    tables = {name: catalog.create_table(f"a.{name}", SCHEMA) for name in NAMES}
    matching = ", ".join(str(10 * at + 3) for at in range(FILES))
    return _works(
        lambda name, rows: tables[name].append(rows),
        lambda name: tables[name].delete(f"id IN ({matching})"),
        lambda name: tables[name].scan().to_arrow(),
        lambda name: list(catalog.load_table(f"a.{name}").scan().plan_files()),
    )


def _delta(directory: Path) -> Work:
    delta: Any = import_module("deltalake")

    def append(name: str, rows: pa.Table) -> None:
        delta.write_deltalake(directory / name, rows, mode="append")

    return _works(
        append,
        lambda name: delta.DeltaTable(directory / name).delete("id % 10 = 3"),
        lambda name: pa.table(
            delta.QueryBuilder().register("t", delta.DeltaTable(directory / name)).execute("select * from t")
        ),
        lambda name: delta.DeltaTable(directory / name).file_uris(),
    )


def _ducklake(directory: Path) -> Work:
    package: Any = import_module("duckdb_extension_ducklake")
    folder = Path(package.__file__).parent / "extensions" / f"v{duckdb.__version__}"
    connection = duckdb.connect()
    connection.execute(f"LOAD '{folder / 'ducklake.duckdb_extension'}'")

    def attach(name: str) -> None:
        options = f"DATA_PATH '{directory}/files', DATA_INLINING_ROW_LIMIT 0"
        connection.execute(f"ATTACH 'ducklake:{directory}/catalog.ducklake' AS {name} ({options})")

    def append(name: str, rows: pa.Table) -> None:
        connection.register("new_rows", rows)
        connection.execute(f"INSERT INTO lake.{name} SELECT * FROM new_rows")  # noqa: S608 - a name of NAMES

    def plan(name: str) -> object:
        connection.execute("DETACH lake")
        attach("lake")
        return connection.execute(f"FROM ducklake_list_files('lake', '{name}')").fetchall()

    attach("lake")
    for name in NAMES:
        connection.execute(f"CREATE TABLE lake.{name} (id BIGINT, amount DOUBLE)")
    return _works(
        append,
        lambda name: connection.execute(f"DELETE FROM lake.{name} WHERE id % 10 = 3"),  # noqa: S608
        lambda name: connection.execute(f"FROM lake.{name}").to_arrow_table(),
        plan,
    )


PEERS: dict[str, Callable[[Path], Work]] = {"icefield": _icefield, "PyIceberg": _pyiceberg}
if find_spec("deltalake"):
    PEERS["delta-rs"] = _delta
if find_spec("duckdb_extension_ducklake"):
    PEERS["DuckLake"] = _ducklake


def _cpu_ms(work: Callable[[], object]) -> float:
    start = process_time()
    work()
    return (process_time() - start) * 1000
