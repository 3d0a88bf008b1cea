"""Tables that are created with their rows, in one commit."""

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from icefield.errors import AlreadyExists, InvalidFilter, InvalidInput, NoSuchTable
from icefield.lake import Lake
from icefield.properties.table import DATA_PATH

ROWS = pa.table({"id": pa.array([1, 2, 3], pa.int64()), "day": ["a", "b", "a"]})


def files_of(lake: Lake) -> list[str]:
    root = Path(lake.warehouse.removeprefix("file://"))
    return sorted(path.name for path in root.rglob("*") if path.is_file() and "shop" in str(path.relative_to(root)))


def failing(times: int = 1) -> pa.RecordBatchReader:
    def batches() -> Iterator[pa.RecordBatch]:
        yield from ROWS.to_batches() * times
        raise InvalidInput("no more")

    return pa.RecordBatchReader.from_batches(ROWS.schema, batches())


def test_a_table_is_created_with_its_rows_in_one_commit(lake: Lake) -> None:
    made = lake.create_table_as("shop.t", ROWS, partition_by=["day"], properties={"k": "v"}, format_version=3)
    assert made.scan().to_arrow().read_all().sort_by("id").to_pydict() == ROWS.to_pydict()
    assert made.metadata.metadata_log == ()
    assert ([f.name for f in made.spec.fields], made.properties["k"]) == (["day"], "v")
    assert (len(made.snapshots()), made.metadata.format_version) == (1, 3)
    made.append(ROWS)
    assert made.count() == 6


def test_all_columns_of_the_rows_are_optional_at_any_depth(memory_lake: Lake) -> None:
    inner = pa.struct([pa.field("x", pa.int32(), nullable=False)])
    kind = pa.schema([pa.field("a", inner, nullable=False), pa.field("m", pa.map_(pa.string(), inner))])
    made = memory_lake.create_table_as("shop.t", pa.Table.from_pylist([{"a": {"x": 1}}], kind))
    required = {".".join(made.schema.paths[i]) for i, field in made.schema.by_id.items() if field.required}
    assert required == {"m.key"}


def test_a_table_of_no_rows_is_created_too(memory_lake: Lake) -> None:
    made = memory_lake.create_table_as("shop.t", ROWS.slice(0, 0))
    assert (made.count(), made.schema.column_names) == (0, ["id", "day"])


@pytest.mark.parametrize("times", [0, 1])
def test_rows_that_fail_leave_no_table_and_no_files(lake: Lake, times: int) -> None:
    with pytest.raises(InvalidInput, match="no more"):
        lake.create_table_as("shop.t", failing(times), partition_by=["day"])
    assert (lake.tables(), files_of(lake)) == ([], [])


def test_a_name_that_is_taken_is_refused_before_a_row_is_read(lake: Lake) -> None:
    lake.create_table("shop.t", "id long")
    before = files_of(lake)
    with pytest.raises(AlreadyExists):
        lake.create_table_as("shop.t", failing())
    assert files_of(lake) == before


def test_a_table_that_another_writer_creates_meanwhile_stays_alone(lake: Lake) -> None:
    def rows() -> Iterator[pa.RecordBatch]:
        yield from ROWS.to_batches()
        lake.create_table("shop.t", "other long")

    with pytest.raises(AlreadyExists):
        lake.create_table_as("shop.t", pa.RecordBatchReader.from_batches(ROWS.schema, rows()))
    assert lake.table("shop.t").schema.column_names == ["other"]
    assert [name for name in files_of(lake) if not name.endswith(".metadata.json")] == []


def test_a_replacement_with_rows_is_one_commit(lake: Lake) -> None:
    table = lake.create_table_as("shop.t", ROWS)
    before = len(table.metadata.metadata_log)
    replaced = lake.create_table_as("shop.t", pa.table({"n": [7]}), replace=True)
    assert len(replaced.metadata.metadata_log) == before + 1
    assert replaced.scan().to_arrow().read_all().to_pydict() == {"n": [7]}
    assert len(replaced.snapshots()) == 2
    with pytest.raises(InvalidInput, match="no more"):
        lake.create_table_as("shop.t", failing(), replace=True)
    assert replaced.scan().to_arrow().read_all().to_pydict() == {"n": [7]}
    assert lake.create_table_as("shop.u", ROWS, replace=True).count() == 3


def test_a_table_like_another_has_its_shape_and_none_of_its_history(lake: Lake, tmp_path: Path) -> None:
    source = lake.create_table(
        "shop.t",
        "id long not null, ts timestamptz, s struct<a: int>",
        partition_by=["day(ts)"],
        order_by=["id desc"],
        properties={"k": "v", "l": "w", DATA_PATH.key: f"{lake.warehouse}/shop/elsewhere"},
        format_version=3,
    )
    with source.evolve() as change:
        change.add_partition_field("bucket(4, id)", name="b")
        change.set_identifier_fields(["id"])
    rows = pa.table({"id": pa.array([1], pa.int64()), "ts": pa.array([0], pa.timestamp("us", "UTC"))})
    source.append(rows, idempotency_key="k1")
    made = lake.create_table_like("shop.u", "shop.t", properties={"l": "x"})
    assert (made.count(), made.snapshots(), made.properties) == (0, [], {"k": "v", "l": "x"})
    assert [f.name for f in made.spec.fields] == ["ts_day", "b"]
    assert made.schema.identifier_field_ids == (1,)
    assert made.metadata.sort_order.fields == source.metadata.sort_order.fields
    assert made.metadata.format_version == 3
    made.append(rows, idempotency_key="k1")
    assert (made.count(), source.count()) == (1, 1)
    with pytest.raises(NoSuchTable):
        lake.create_table_like("shop.w", "shop.nothing")
    with pytest.raises(InvalidFilter, match="the check 'amounts' cannot be run"):
        lake.create_table_like("shop.w", "shop.t", properties={"icefield.check.amounts": "amount >"})
    assert not lake.has_table("shop.w")
