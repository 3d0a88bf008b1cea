"""Tables with columns that Icefield cannot write: rows can be deleted without a data file, but not changed."""

from collections.abc import Callable

import pyarrow as pa
import pytest

from icefield.engine.choose import EngineName
from icefield.errors import Unsupported
from icefield.lake import Lake
from icefield.table.table import Table

COLUMNS = {
    "variant": "variant",
    "geometry in a struct": "struct<a: int, g: geometry>",
    "unknown in a list": "list<unknown>",
    "geography": "geography(srid:4326, karney)",
}
OTHERS = [kind for kind in COLUMNS.values() if kind != "variant"]
VECTOR = 1
DELETES: dict[str, Callable[[Table, EngineName, str], object]] = {
    "filter": lambda table, engine, mode: table.delete("id = 4", engine=engine, mode=mode),
    "merge": lambda table, engine, mode: (
        table.merge(pa.table({"id": [4, 9]}), ["id"], engine=engine, mode=mode).when_matched().delete().execute()
    ),
}
WRITES: dict[str, Callable[[Table, EngineName], object]] = {
    "copy-on-write": lambda table, engine: table.delete("id = 4", engine=engine, mode="copy-on-write"),
    "update": lambda table, engine: table.update({"n": "n + 1"}, "id = 4", engine=engine, mode="merge-on-read"),
    "merge": lambda table, engine: (
        table.merge(pa.table({"id": [4]}), ["id"], engine=engine, mode="auto")
        .when_matched("target.n > 100")
        .delete()
        .when_matched()
        .update({"n": "0"})
        .execute()
    ),
    "upsert": lambda table, engine: table.upsert(pa.table({"id": [4], "n": [1]}), ["id"], engine=engine),
    "compact": lambda table, _: table.compact(),
}


@pytest.fixture
def table(lake: Lake) -> Table:
    """A table with rows 2 to 7; rows 0 and 1 were deleted by position and by key."""
    made = lake.create_table("a.t", "id long, p string, n long", partition_by=["p"], format_version=2)
    made.append(pa.table({"id": range(8), "p": ["x", "y"] * 4, "n": [0] * 8}))
    made.delete("id = 0", mode="merge-on-read")
    made.upsert(pa.table({"id": [1, 2], "p": ["y", "x"], "n": [0, 0]}), ["id"], mode="equality")
    made.delete("id = 1", mode="merge-on-read")
    made.upgrade_format_version(3)
    return made


def with_column(table: Table, kind: str) -> Table:
    with table.evolve() as evolve:
        evolve.add_column("u", kind)
    return table


def ids_of(table: Table) -> list[int]:
    return sorted(table.scan(select=["id"]).to_arrow().read_all()["id"].to_pylist())


ALL_DELETES = [(COLUMNS["variant"], mode, delete) for mode in ("merge-on-read", "auto") for delete in DELETES]


@pytest.mark.parametrize(("kind", "mode", "delete"), [*ALL_DELETES, *((kind, "auto", "filter") for kind in OTHERS)])
def test_rows_are_deleted_by_vectors(table: Table, engine: EngineName, kind: str, mode: str, delete: str) -> None:
    files = with_column(table, kind).scan().files()["file_path"].to_pylist()
    DELETES[delete](table, engine, mode)
    assert ids_of(table) == [2, 3, 5, 6, 7]
    assert table.scan().files()["file_path"].to_pylist() == files
    assert VECTOR in table.inspect("delete_files").to_arrow().read_all()["content"].to_pylist()


@pytest.mark.parametrize(
    ("kind", "write"),
    [*((COLUMNS["variant"], write) for write in WRITES), *((kind, "update") for kind in OTHERS)],
)
def test_rows_are_not_written(table: Table, engine: EngineName, kind: str, write: str) -> None:
    before = with_column(table, kind).metadata_location
    with pytest.raises(Unsupported, match=r"cannot write rows of this table: column 'u") as raised:
        WRITES[write](table, engine)
    assert table.metadata_location == before
    assert ids_of(table) == [2, 3, 4, 5, 6, 7]
    if write == "copy-on-write":
        assert "mode='merge-on-read'" in str(raised.value)


@pytest.mark.spark
@pytest.mark.usefixtures("spark")
def test_an_expression_of_spark_deletes_by_vectors(table: Table) -> None:
    with_column(table, COLUMNS["variant"]).delete("length(p) = 1 AND id IN (SELECT 4)", mode="auto", engine="spark")
    assert ids_of(table) == [2, 3, 5, 6, 7]


def test_equality_deletes_are_converted(table: Table, engine: EngineName) -> None:
    with_column(table, COLUMNS["variant"]).convert_equality_deletes(engine=engine)
    assert ids_of(table) == [2, 3, 4, 5, 6, 7]
    assert set(table.inspect("delete_files").to_arrow().read_all()["content"].to_pylist()) == {VECTOR}


def test_whole_files_are_deleted_by_metadata_alone(table: Table, engine: EngineName) -> None:
    done = with_column(table, COLUMNS["variant"]).delete("p = 'x'", engine=engine)
    assert done.files_dropped > 0
    assert ids_of(table) == [3, 5, 7]
