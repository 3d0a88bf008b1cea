"""icefield reads what PyIceberg made and evolved in the same catalog: the same rows as PyIceberg, at every age."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table import Table as PyIcebergTable
from tests.peers.case import KEY, Append, TableCase
from tests.peers.evolved import ASKS, NAME, evolve
from tests.peers.normal import normal_rows
from tests.peers.predicates import Predicate
from tests.peers.pyiceberg_catalog import open_pyiceberg
from tests.peers.tables import partitioned_tables, primitives

import icefield
from icefield import Lake

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# PyIceberg cannot group rows by uuid, and of floats it writes zeros twice and NaN not at all.
NOT_GROUPED = ("identity_uuid", "identity_float", "identity_double")
BY_IDENTITY = [c for c in partitioned_tables() if c.name.startswith("identity_") and c.name not in NOT_GROUPED]


@dataclass(frozen=True)
class Shared:
    """One catalog, seen by both."""

    lake: Lake
    theirs: SqlCatalog

    def their_table(self) -> PyIcebergTable:
        return self.theirs.load_table(NAME)


@dataclass(frozen=True)
class Step:
    """What each side read after a step."""

    ours: pa.Table
    theirs: pa.Table


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shared]:
    folder = tmp_path_factory.mktemp("theirs") / "a lake, 100%41"
    with icefield.connect(folder, durable=False) as lake:
        lake.create_namespace("theirs")
        catalog = open_pyiceberg(folder)
        yield Shared(lake, catalog)
        catalog.close()


@pytest.fixture(scope="module")
def steps(shared: Shared) -> list[Step]:
    return [
        Step(shared.lake.table(NAME).scan().to_arrow().read_all(), table.scan().to_arrow())
        for table in evolve(shared.theirs)
    ]


def test_after_every_step_both_read_the_same_rows(steps: list[Step]) -> None:
    assert [step.theirs.num_rows for step in steps] == [10, 20, 30, 40, 50, 47, 38]
    for step in steps:
        assert step.ours.schema.names == step.theirs.schema.names
        assert normal_rows(step.ours, step.ours.schema) == normal_rows(step.theirs, step.ours.schema)


def test_columns_keep_their_values_through_renames_moves_and_reuse_of_names(steps: list[Step]) -> None:
    by_key = {row["id"]: row for row in steps[-1].ours.to_pylist()}
    # From the first file: renamed, widened and nested columns are there; what was added later, or again, is null.
    assert (by_key[5]["label"], by_key[5]["number"], by_key[5]["ratio"]) == ("text 5", 5, 1.25)
    assert by_key[5]["inner"] == {"w": 5, "y": "y5", "z": None}
    assert (by_key[5]["note"], by_key[5]["reused"], by_key[22]["reused"]) == (None, None, 110)


@pytest.mark.parametrize("ask", ASKS, ids=str)
def test_a_filter_finds_the_rows_that_match(ask: Predicate, shared: Shared, steps: list[Step]) -> None:
    everything = steps[-1].theirs
    expected = _keys(everything.filter(pa.array(ask.matches(everything))))
    assert expected
    assert _keys(shared.lake.table(NAME).scan(where=ask.icefield()).to_arrow().read_all()) == expected
    assert shared.lake.table(NAME).scan(where=ask.icefield()).count() == len(expected)
    assert _keys(shared.their_table().scan(row_filter=ask.pyiceberg()).to_arrow()) == expected


def test_every_snapshot_is_read_with_its_rows_and_columns_of_then(shared: Shared, steps: list[Step]) -> None:
    table, theirs = shared.lake.table(NAME), shared.their_table()
    assert len(theirs.metadata.snapshots) >= len(steps)
    for snapshot in theirs.metadata.snapshots:
        then = theirs.scan(snapshot_id=snapshot.snapshot_id).to_arrow()
        ours = table.scan(as_of=snapshot.snapshot_id).to_arrow().read_all()
        assert ours.schema.names == then.schema.names
        assert normal_rows(ours, ours.schema) == normal_rows(then, ours.schema)


def test_an_old_snapshot_is_filtered_by_its_own_names(shared: Shared, steps: list[Step]) -> None:
    first = shared.their_table().metadata.snapshots[0].snapshot_id
    table = shared.lake.table(NAME)
    assert _keys(table.scan(where="reused = 'old 4'", as_of=first).to_arrow().read_all()) == [4]
    assert _keys(table.scan(where="text = 'text 4'", as_of=first).to_arrow().read_all()) == [4]


@pytest.mark.parametrize("case", [primitives(), *BY_IDENTITY], ids=lambda case: case.name)
def test_every_type_and_its_statistics_are_read_as_they_wrote_them(case: TableCase, shared: Shared) -> None:
    case = _as_it_can_write(case)
    theirs = shared.theirs.create_table(f"theirs.{case.name}", case.schema)
    with theirs.update_spec() as update:
        for name in case.partition_by:
            update.add_identity(name)
    for step in case.steps:
        theirs.append(step.rows)
    table = shared.lake.table(f"theirs.{case.name}")
    assert normal_rows(table.scan().to_arrow().read_all(), case.schema) == case.normal_rows()
    for ask in _chosen(case):
        found = _keys(table.scan(where=ask.icefield(), select=[KEY]).to_arrow().read_all())
        assert [key for key in found if key not in case.keys_of_nan(ask)] == case.keys_matching(ask), str(ask)


@pytest.mark.spark
def test_spark_reads_the_same_rows(shared: Shared, steps: list[Step], spark: "SparkSession") -> None:
    rows = shared.lake.table(NAME).scan().to_spark().toArrow()
    assert normal_rows(rows, steps[-1].ours.schema) == normal_rows(steps[-1].theirs, steps[-1].ours.schema)


@pytest.mark.spark
@pytest.mark.parametrize("ask", ASKS, ids=str)
def test_spark_finds_the_rows_that_match(
    ask: Predicate, shared: Shared, steps: list[Step], spark: "SparkSession"
) -> None:
    everything, table = steps[-1].theirs, shared.lake.table(NAME)
    expected = _keys(everything.filter(pa.array(ask.matches(everything))))
    assert _keys(table.scan(where=ask.icefield(), select=[KEY]).to_spark().toArrow()) == expected
    assert _keys(table.scan().to_spark().where(ask.spark()).select(KEY).toArrow()) == expected


def _keys(rows: pa.Table) -> list[int]:
    return sorted(rows.column(KEY).to_pylist())


def _chosen(case: TableCase) -> list[Predicate]:
    """Take a few per column."""
    seen: dict[tuple[str, str], Predicate] = {}
    for ask in case.asks:
        if ask.operator in ("=", ">=", "is null") and ask.column in case.schema.names:
            seen.setdefault((ask.column, ask.operator), ask)
    return list(seen.values())


def _as_it_can_write(case: TableCase) -> TableCase:
    """Leave out what PyIceberg cannot write: columns of uuids, and rows with some values."""
    schema = pa.schema([field for field in case.schema if field.type != pa.uuid()])
    steps = [Append(_writable(step.rows.select(schema.names), case)) for step in case.steps]
    return replace(case, schema=schema, steps=[step for step in steps if step.rows.num_rows])


def _writable(rows: pa.Table, case: TableCase) -> pa.Table:
    def fits(value: Any) -> bool:
        if isinstance(value, str) and value.startswith("\ud7ff"):
            return False  # it computes an upper bound that is not text
        # It makes directories of partition values, however long.
        return not (case.partition_by and isinstance(value, str | bytes) and len(value) > 100)

    kept = [all(fits(value) for value in row.values()) for row in rows.to_pylist()]
    return rows.filter(pa.array(kept, pa.bool_()))
