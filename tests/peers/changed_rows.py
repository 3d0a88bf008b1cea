"""PyIceberg and DuckDB read a table after row-level changes: the rows of the model, and their lineage."""

from pyiceberg.table import StaticTable
from tests.engine.merge_model import LINEAGE
from tests.engine.verb_history import VerbHistory
from tests.peers.duckdb_reader import DuckDBReader
from tests.peers.normal import normal_rows

from icefield.model.metadata import ROW_LINEAGE_VERSION
from icefield.table.table import Table


def check_pyiceberg(history: VerbHistory) -> None:
    """Compare what PyIceberg 0.12.0 reads, which has no columns of lineage, and no equality deletes."""
    if has_equality_deletes(history.table):
        return
    found = StaticTable.from_metadata(history.table.metadata_location).scan().to_arrow()
    expected = history.expected_rows(lineage=False)
    assert normal_rows(found, expected.schema) == normal_rows(expected, expected.schema), history.steps


def check_duckdb(history: VerbHistory, duckdb: DuckDBReader) -> None:
    """Compare what DuckDB 1.5.5 reads, with lineage.

    It applies the equality deletes of a partition to all partitions, fails on those of several specs, and takes rows
    with a null key for deleted by any of them.
    """
    table = history.table
    has_null_key = any(row.values["id"] is None for row in history.rows)
    if has_equality_deletes(table) and (has_null_key or any(spec.fields for spec in table.metadata.specs)):
        return
    lineage = table.metadata.format_version >= ROW_LINEAGE_VERSION
    expected = history.expected_rows(lineage=lineage)
    found = duckdb.read(table.metadata_location, more=LINEAGE if lineage else ())
    assert normal_rows(found, expected.schema) == normal_rows(expected, expected.schema), history.steps


def has_equality_deletes(table: Table) -> bool:
    """Return whether equality deletes apply to the current version, or were left behind in it."""
    head = table.metadata.current_snapshot
    return head is not None and head.summary["total-equality-deletes"] != "0"
