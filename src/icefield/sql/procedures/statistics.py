"""Procedures that compute statistics files."""

import pyarrow as pa

from icefield.sql.procedures.procedure import TABLE, Arguments, Kind, Procedure, ProcedureRows, optional
from icefield.sql.syntax.place import pointing_at


def _compute_table_stats(arguments: Arguments) -> ProcedureRows:
    table, columns = arguments.table(), arguments["columns"]
    with pointing_at(arguments.place("columns" if columns is not None else "snapshot_id")):
        file = table.compute_statistics(columns, snapshot_id=arguments["snapshot_id"], engine=arguments.engine)
    return [[file.statistics_path]]


def _compute_partition_stats(arguments: Arguments) -> ProcedureRows:
    table, snapshot_id = arguments.table(), arguments["snapshot_id"]
    with pointing_at(arguments.place("snapshot_id" if snapshot_id is not None else "table")):
        file = table.compute_partition_statistics(snapshot_id=snapshot_id)
    return [[file.statistics_path]]


_SNAPSHOT = optional("snapshot_id", Kind.LONG)
PROCEDURES = (
    Procedure(
        "compute_table_stats",
        (TABLE, _SNAPSHOT, optional("columns", Kind.STRINGS)),
        pa.schema({"statistics_file": pa.string()}),
        _compute_table_stats,
        has_dry_run=False,
    ),
    Procedure(
        "compute_partition_stats",
        (TABLE, _SNAPSHOT),
        pa.schema({"partition_statistics_file": pa.string()}),
        _compute_partition_stats,
        has_dry_run=False,
    ),
)
