"""Metadata tables against PyIceberg's: the same rows of the same table, in every format version."""

import datetime
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.table import Table as TheirTable
from pyiceberg.table.inspect import InspectTable
from tests.peers.pyiceberg_catalog import open_pyiceberg

import icefield
from icefield.table.table import Table

SCHEMA = "id long not null, name string, price decimal(9, 2), ratio double, ts timestamp, day date"
START = datetime.datetime(2026, 1, 1)
EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


@dataclass(frozen=True)
class Both:
    """One table, seen by us and by PyIceberg, and the snapshot before rows were deleted by position."""

    ours: Table
    theirs: TheirTable
    before_deletes: int

    @property
    def inspect(self) -> InspectTable:
        return self.theirs.inspect


@pytest.fixture(scope="module", params=[1, 2, 3])
def both(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    """Two specs, files removed by an overwrite, deletes by position (from version 2 on), a branch and a tag."""
    folder = tmp_path_factory.mktemp("inspect")
    version = request.param
    with icefield.connect(folder, durable=False) as lake:
        table = lake.create_table(
            "a.t",
            SCHEMA,
            partition_by=["name", "truncate(10, id)"],
            format_version=version,
            properties={"write.delete.mode": "merge-on-read"} if version > 1 else {},
        )
        before = fill(table)
        if version > 1:
            table.delete("id = 9")
        catalog = open_pyiceberg(Path(folder))
        yield Both(table, catalog.load_table("a.t"), before)
        catalog.close()


def fill(table: Table) -> int:
    table.append(rows(table, 0, 6))
    table.append(rows(table, 6, 12))
    with table.evolve() as change:
        change.add_partition_field("day(ts)")
        change.drop_partition_field("name")
        change.update_column_type("price", "decimal(12, 2)")
    table.append(rows(table, 12, 18))
    table.create_tag("early", max_ref_age_ms=10**12)
    table.create_branch("side", min_snapshots_to_keep=3, max_snapshot_age_ms=10**11)
    table.at("side").append(rows(table, 18, 20))
    snapshot = table.overwrite(rows(table, 0, 2), where="id < 4")
    assert snapshot is not None
    return snapshot.snapshot_id


def rows(table: Table, first: int, last: int) -> pa.Table:
    made = [
        {
            "id": i,
            "name": ("ada", "grace", None)[i % 3],
            "price": Decimal(i) / 4,
            "ratio": float("nan") if i % 5 == 0 else i / 8,
            "ts": START + datetime.timedelta(hours=20 * i),
            "day": None if i % 4 == 0 else datetime.date(2026, 1, 1 + i),
        }
        for i in range(first, last)
    ]
    return pa.Table.from_pylist(made, table.scan().to_arrow().schema)


def read(table: Table, name: str, **options: Any) -> pa.Table:
    return table.inspect(name, **options).to_arrow().read_all()


def assert_same(ours: pa.Table, theirs: pa.Table) -> None:
    """Compare all columns that both have, in any order of rows."""
    assert set(theirs.column_names) <= set(ours.column_names)
    mine = sorted((plain(row, theirs.schema) for row in ours.select(theirs.column_names).to_pylist()), key=repr)
    assert mine == sorted((plain(row, theirs.schema) for row in theirs.to_pylist()), key=repr)


def plain(row: dict[str, Any], schema: pa.Schema) -> dict[str, Any]:
    return {field.name: plain_value(row[field.name], field.type) for field in schema}


def plain_value(value: Any, kind: pa.DataType) -> Any:
    """Return a value without what is a matter of taste: how exact a time is, and what means nothing."""
    if pa.types.is_struct(kind) and value is not None:
        return {f.name: plain_value(value[f.name], f.type) for f in kind}
    if pa.types.is_map(kind) or pa.types.is_list(kind):
        return sorted(value, key=repr) if value else None
    if isinstance(value, datetime.datetime) and pa.types.is_timestamp(kind):
        return (value.replace(tzinfo=datetime.UTC) - EPOCH) // datetime.timedelta(milliseconds=1)
    return repr(value) if isinstance(value, float) else value


def test_snapshots(both: Both) -> None:
    assert_same(read(both.ours, "snapshots"), both.inspect.snapshots())


def test_history(both: Both) -> None:
    assert_same(read(both.ours, "history"), both.inspect.history())


def test_refs(both: Both) -> None:
    theirs = both.inspect.refs()
    assert sorted(theirs["name"].to_pylist()) == ["early", "main", "side"]
    assert_same(read(both.ours, "refs"), theirs)


def test_metadata_log_entries(both: Both) -> None:
    assert_same(read(both.ours, "metadata_log_entries"), both.inspect.metadata_log_entries())


def test_manifests(both: Both) -> None:
    assert_same(read(both.ours, "manifests"), both.inspect.manifests())


def test_all_manifests(both: Both) -> None:
    assert_same(read(both.ours, "all_manifests"), both.inspect.all_manifests())


@pytest.mark.parametrize("name", ["files", "data_files", "delete_files"])
def test_files(both: Both, name: str) -> None:
    theirs = getattr(both.inspect, name)()
    assert_same(read(both.ours, name), theirs)
    assert (theirs.num_rows > 0) == (name != "delete_files" or both.ours.metadata.format_version > 1)


@pytest.mark.parametrize("name", ["all_files", "all_data_files", "all_delete_files"])
def test_files_of_all_snapshots(both: Both, name: str) -> None:
    # Theirs has a row for every snapshot that a file is in, ours for every manifest that lists it.
    theirs = getattr(both.inspect, name)()
    ours = read(both.ours, name)
    assert set(ours["file_path"].to_pylist()) == set(theirs["file_path"].to_pylist())


def test_entries(both: Both) -> None:
    # At a snapshot without delete files, for theirs fails on files whose column sizes are not known.
    theirs = both.inspect.entries(both.before_deletes)
    ours = read(both.ours, "entries", as_of=both.before_deletes)
    assert 2 in ours["status"].to_pylist()
    assert_same(ours, theirs)


def test_partitions(both: Both) -> None:
    assert_same(read(both.ours, "partitions"), both.inspect.partitions())
