"""icefield ingest: append files of rows to a table, in one commit, without a JVM."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import rich_click as click

from icefield.catalog.catalog import PointerSwap
from icefield.cli.commands.snapshots import summary_number
from icefield.cli.lakes import make_lake, open_lake
from icefield.cli.options import definition_options, table_argument
from icefield.cli.output import counted, print_json, print_text
from icefield.cli.progress import Steps, show_progress
from icefield.cli.row_files import read_row_file, row_file_schema
from icefield.cli.settings import LakeCommand, Settings
from icefield.commit.validate.references import remove_quietly
from icefield.errors import CommitConflict, IcefieldError, InvalidInput, NoSuchTable, SchemaMismatch
from icefield.lake import Lake
from icefield.model.names import parse_table_name
from icefield.model.snapshot import Snapshot
from icefield.parquet.write.conform import check_arrow_schema, conform_batch
from icefield.table.table import Table
from icefield.types.arrow import arrow_schema
from icefield.types.schema import Schema


@click.command(cls=LakeCommand)
@table_argument()
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--create", "creates", is_flag=True, help="Create the table first, with the columns of the first file.")
@definition_options()
@click.pass_obj
def ingest(  # noqa: PLR0913 - one parameter per option
    settings: Settings,
    table: str,
    files: tuple[Path, ...],
    *,
    creates: bool,
    partition_by: tuple[str, ...],
    order_by: tuple[str, ...],
    properties: dict[str, str],
) -> None:
    """Append the rows of Parquet, CSV or JSON Lines files to a table.

    All files go into one commit, or none. The name tells the format: .parquet, .csv, .json, .jsonl, .ndjson, also
    with .gz. Columns are matched by name; CSV and JSON values are read as the table's types.
    --partition-by, --order-by and --property are for --create.
    """
    if creates:
        with make_lake(settings) as lake:
            layout = _Layout(partition_by, order_by, properties)
            snapshot = _create_and_append(lake, table, files, layout)
    else:
        if partition_by or order_by or properties:
            raise InvalidInput("--partition-by, --order-by and --property need a new table", hint="Add --create")
        with open_lake(settings) as lake:
            snapshot = _append(lake.table(table), files)
    _report(settings, table, snapshot, created=creates)


@dataclass(frozen=True)
class _Layout:
    partition_by: Sequence[str]
    order_by: Sequence[str]
    properties: dict[str, str]


def _create_and_append(lake: Lake, name: str, files: Sequence[Path], layout: _Layout) -> Snapshot | None:
    table = lake.create_table(
        name,
        row_file_schema(files[0], None),
        partition_by=layout.partition_by,
        order_by=layout.order_by,
        properties=layout.properties,
    )
    made = table.metadata_location
    try:
        return _append(table, files)
    except IcefieldError as error:
        # The table was created for these rows alone: it goes with them, unless they may have been committed, or
        # somebody else has used it since.
        if error.cleanable:
            with suppress(CommitConflict, NoSuchTable):
                lake.catalog.swap([PointerSwap(parse_table_name(name), made, None)])
                remove_quietly(lake.store, [made])
        raise


def _append(table: Table, files: Sequence[Path]) -> Snapshot | None:
    schema = table.schema
    for path in files:
        _check(path, schema)
    with show_progress(f"reading {counted(len(files), 'file')} into {table.name}") as steps:
        batches = (batch for path in files for batch in _fitting_batches(path, schema, steps))
        return table.append(pa.RecordBatchReader.from_batches(arrow_schema(schema), batches))


def _check(path: Path, schema: Schema) -> None:
    """Raise an error for a file whose columns do not fit the table, before any is written."""
    columns = row_file_schema(path, schema)
    try:
        check_arrow_schema(columns, schema)
    except SchemaMismatch as error:
        raise SchemaMismatch(f"{path}: {error.message}", hint=error.hint) from error


def _fitting_batches(path: Path, schema: Schema, steps: Steps) -> Iterator[pa.RecordBatch]:
    for batch in read_row_file(path, schema):
        try:
            yield conform_batch(batch, schema)
        except SchemaMismatch as error:
            raise SchemaMismatch(f"{path}: {error.message}", hint=error.hint) from error
        steps.advance(batch.num_rows, path.name)


def _report(settings: Settings, table: str, snapshot: Snapshot | None, *, created: bool) -> None:
    rows = (summary_number(snapshot, "added-records") or 0) if snapshot else 0
    files = (summary_number(snapshot, "added-data-files") or 0) if snapshot else 0
    if settings.as_json:
        identity = str(snapshot.snapshot_id) if snapshot else None
        print_json({"table": table, "created": created, "snapshot-id": identity, "rows": rows, "data-files": files})
    elif snapshot is None:
        print_text(f"no rows to append to {table}")
    else:
        done = f"{counted(rows, 'row')} to {table} in {counted(files, 'data file')}"
        print_text(f"appended {done} as snapshot {snapshot.snapshot_id}")
