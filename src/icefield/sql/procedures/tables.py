"""Procedures that bring tables and files into the lake: register_table, add_files, undrop; snapshot and migrate not."""

from dataclasses import dataclass
from urllib.parse import unquote

import pyarrow as pa

from icefield.arguments import whole_number
from icefield.dml.add_files import list_files
from icefield.errors import InvalidInput, Unsupported
from icefield.sql.procedures.procedure import TABLE, Arguments, Kind, Procedure, ProcedureRows, optional, required
from icefield.sql.syntax.place import pointing_at
from icefield.table.table import Table

_REGISTERED = pa.schema(
    {"current_snapshot_id": pa.int64(), "total_records_count": pa.int64(), "total_data_files_count": pa.int64()}
)
_ADDED = pa.schema({"added_files_count": pa.int64(), "changed_partition_count": pa.int64()})
_RESTORED = pa.schema({"table": pa.string(), "current_snapshot_id": pa.int64()})


def _register_table(arguments: Arguments) -> ProcedureRows:
    name = arguments.new_name()
    with pointing_at(arguments.place("metadata_file")):
        table = arguments.run.lake.register_table(str(name), arguments["metadata_file"])
    return [_totals(table)]


def _totals(table: Table) -> list[int | None]:
    snapshot = table.metadata.current_snapshot
    if snapshot is None:
        return [None, None, None]
    counts = [whole_number(snapshot.summary.get(key)) for key in ("total-records", "total-data-files")]
    return [snapshot.snapshot_id, *counts]


def _undrop(arguments: Arguments) -> ProcedureRows:
    to = None if arguments["to"] is None else str(arguments.new_name("to"))
    table = arguments.run.lake.undrop(arguments["table"], to=to)
    return [[table.name, _totals(table)[0]]]


def _add_files(arguments: Arguments) -> ProcedureRows:
    table, source = arguments.table(), arguments.name("source_table")
    if len(source.parts) != 2 or source.parts[0].lower() != "parquet":
        raise arguments.error(
            "source_table",
            "files are added from a directory",
            hint="Write it as '`parquet`.`/path/to/files`'",
            kind=Unsupported,
        )
    if arguments["check_duplicate_files"] is False:
        raise arguments.error("check_duplicate_files", "a file can be in a table only once", kind=Unsupported)
    wanted = arguments["partition_filter"] or {}
    with pointing_at(arguments.place("source_table")):
        found = list_files(arguments.run.lake.store, source.parts[1])
    chosen = [location for location in found if _is_in(location, wanted)]
    if wanted and not chosen:
        message = f"no file of {source.parts[1]} is in the partition {wanted}"
        raise arguments.error("partition_filter", message, kind=InvalidInput)
    added = table.add_files(chosen) if chosen else None
    count = 0 if added is None else whole_number(added.summary.get("added-data-files"))
    partitions = 0 if added is None else whole_number(added.summary.get("changed-partition-count"))
    return [[count, partitions]]


def _is_in(location: str, wanted: dict[str, str]) -> bool:
    """Return whether the directories of a file say the partition values that are wanted."""
    found = (part.split("=", 1) for part in location.split("/") if "=" in part)
    known = {unquote(name).lower(): unquote(value) for name, value in found}
    return all(known.get(name.lower()) == value for name, value in wanted.items())


@dataclass(frozen=True)
class _NotHere:
    """A procedure of Iceberg that the lake has no verb for. hint: what to use instead."""

    why: str
    hint: str

    def __call__(self, arguments: Arguments) -> ProcedureRows:
        raise arguments.call.error(self.why, hint=self.hint, kind=Unsupported)


_IMPORT = "Create the table, and CALL system.add_files(table => …, source_table => '`parquet`.`/path`')"
_PROPERTIES = optional("properties", Kind.MAP)
_FILES = (optional("parallelism", Kind.INT), optional("ignore_missing_files", Kind.BOOLEAN))
PROCEDURES = (
    Procedure(
        "register_table",
        (TABLE, required("metadata_file")),
        _REGISTERED,
        _register_table,
        is_transactional=False,
        has_dry_run=False,
    ),
    Procedure("undrop", (TABLE, optional("to")), _RESTORED, _undrop, is_transactional=False, has_dry_run=False),
    Procedure(
        "add_files",
        (
            *(TABLE, required("source_table"), optional("partition_filter", Kind.MAP)),
            *(optional("check_duplicate_files", Kind.BOOLEAN), optional("parallelism", Kind.INT)),
        ),
        _ADDED,
        _add_files,
        has_dry_run=False,
    ),
    Procedure(
        "snapshot",
        (required("source_table"), TABLE, optional("location"), _PROPERTIES, *_FILES),
        pa.schema({"imported_files_count": pa.int64()}),
        _NotHere("a table of another catalog cannot be snapshotted: the lake reads its own tables only", _IMPORT),
        is_transactional=False,
    ),
    Procedure(
        "migrate",
        (TABLE, _PROPERTIES, optional("drop_backup", Kind.BOOLEAN), optional("backup_table_name"), *_FILES),
        pa.schema({"migrated_files_count": pa.int64()}),
        _NotHere("a table of another catalog cannot be migrated: the lake reads its own tables only", _IMPORT),
        is_transactional=False,
    ),
    Procedure(
        "rewrite_table_path",
        (
            *(TABLE, required("source_prefix"), required("target_prefix"), optional("start_version")),
            *(optional("end_version"), optional("staging_location"), optional("create_file_list", Kind.BOOLEAN)),
        ),
        pa.schema(
            {
                "latest_version": pa.string(),
                "file_list_location": pa.string(),
                "rewritten_manifest_file_paths_count": pa.int32(),
                "rewritten_delete_file_paths_count": pa.int32(),
            }
        ),
        _NotHere(
            "the paths of one table are not rewritten for a copy",
            "Copy or move the whole lake, and call lake.relocate() or `icefield relocate` there",
        ),
        is_transactional=False,
    ),
)
