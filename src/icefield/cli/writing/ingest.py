"""icefield ingest: append files of rows to a table, which may be created from them, without a JVM."""

import hashlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import rich_click as click

from icefield.cli.files.rows_of_files import RowFiles
from icefield.cli.files.sources import files_argument, format_options, open_sources, row_format
from icefield.cli.lakes import lake_is_there, make_lake, open_branch, open_lake
from icefield.cli.options import (
    branch_option,
    definition_options,
    format_version_option,
    location_option,
    table_argument,
)
from icefield.cli.output import counted, print_json, print_text, talk
from icefield.cli.progress import Steps, show_progress
from icefield.cli.questions import ask_first, asking_options
from icefield.cli.settings import Settings, SnapshotCommand
from icefield.cli.snapshot_facts import summary_number
from icefield.commit.validate.idempotency_key import find_landed
from icefield.engine.rows import as_schema
from icefield.errors import InvalidInput, NoSuchTable
from icefield.lake import Lake
from icefield.model.snapshot import MAIN, Snapshot
from icefield.properties.format_versions import FORMAT_VERSION
from icefield.table.definition import define_table
from icefield.table.table import Table
from icefield.types.schema import Schema

_BLOCK_BYTES = 1 << 20


@dataclass(frozen=True)
class _Layout:
    partition_by: Sequence[str]
    order_by: Sequence[str]
    properties: dict[str, str]
    format_version: int | None
    location: str | None


@dataclass(frozen=True)
class _Ingested:
    """What was appended from one file, or from all of them."""

    snapshot: Snapshot | None
    file: str | None = None
    was_there: bool = False

    def number(self, key: str) -> int:
        return (summary_number(self.snapshot, key) or 0) if self.snapshot and not self.was_there else 0

    def as_dict(self) -> dict[str, object]:
        identity = str(self.snapshot.snapshot_id) if self.snapshot else None
        rows = self.number("added-records")
        return {"file": self.file, "snapshot-id": identity, "rows": rows, "skipped": self.was_there}


@click.command(cls=SnapshotCommand)
@table_argument()
@files_argument()
@click.option("--create", "creates", is_flag=True, help="Create the table from the files, if there is none.")
@click.option("--once", is_flag=True, help="Skip files that were ingested before; each file is a commit of its own.")
@branch_option()
@format_options()
@definition_options()
@format_version_option()
@location_option()
@asking_options()
@click.pass_obj
def ingest(  # noqa: PLR0913 - one parameter per option
    settings: Settings,
    /,
    table: str,
    files: tuple[str, ...],
    *,
    creates: bool,
    once: bool,
    branch: str,
    partition_by: tuple[str, ...],
    order_by: tuple[str, ...],
    properties: dict[str, str],
    format_version: int | None,
    location: str | None,
    dry_run: bool,
    yes: bool,
    **form: Any,
) -> None:
    """Append the rows of Parquet, CSV or JSON files to a table.

    FILE is a file, a pattern in quotes such as 'in/*.csv', a directory, or - for standard input. The name tells the
    format: .parquet, .csv, .tsv, .json, .jsonl, .ndjson, also with .gz. Columns are matched by name; CSV and JSON
    values are read as the table's types. JSON is one object per line, an array, or any objects.

    All files go into one commit, or none; with --once each is a commit, and a file with the name and contents of one
    that was ingested into the branch before is skipped. --create shows the columns that were found, and asks.
    --partition-by, --order-by, --property, --format-version and --location are for --create.
    """
    layout, read_as = _Layout(partition_by, order_by, properties, format_version, location), row_format(**form)
    if not creates and any(asdict(layout).values()):
        raise InvalidInput("the options of a new table are given, and there is none", hint="Add --create")
    with open_sources(files, read_as) as paths:
        rows = RowFiles(paths, read_as)
        is_new = creates and not _has_table(settings, table)
        done: list[_Ingested] = []
        if is_new and branch != MAIN:
            raise InvalidInput(f"a new table has no branch {branch}", hint="Create it first, and then the branch")
        rows.show_formats()
        if is_new:
            schema = _agree_on_columns(table, rows, layout, dry_run=dry_run, yes=yes)
            if not dry_run:
                with make_lake(settings) as lake:
                    done = _create(lake, table, rows, schema, layout, once=once)
        else:
            with open_lake(settings) as lake:
                done = _append(_existing(lake, table, branch), rows, branch, once=once, dry_run=dry_run)
    if dry_run:
        _report_plan(settings, table, paths, is_new=is_new)
    else:
        _report(settings, table, done, created=is_new, once=once)


def _existing(lake: Lake, table: str, branch: str) -> Table:
    try:
        return open_branch(lake, table, branch)
    except NoSuchTable as error:
        found = f"{error.hint}. " if error.hint else ""
        raise NoSuchTable(error.message, hint=f"{found}To create it from the files, give --create") from error


def _has_table(settings: Settings, table: str) -> bool:
    if not lake_is_there(settings):
        return False
    with open_lake(settings) as lake:
        return lake.has_table(table)


def _agree_on_columns(table: str, rows: RowFiles, layout: _Layout, *, dry_run: bool, yes: bool) -> Schema:
    """Infer the columns of a new table, show them, and ask."""
    schema = as_schema(rows.columns())
    version = layout.format_version or FORMAT_VERSION
    define_table(schema, layout.partition_by, layout.order_by, layout.properties, version)  # raises if it cannot
    lines = [f"columns of the new table {table}:", *(f"  {f.name}  {f.type}" for f in schema.fields)]
    if dry_run:
        talk("\n".join(lines))
    ask_first("\n".join(lines), "Create it?", "nothing was created", dry_run=dry_run, yes=yes)
    return schema


def _create(lake: Lake, table: str, rows: RowFiles, schema: Schema, layout: _Layout, *, once: bool) -> list[_Ingested]:
    if once:
        made = lake.create_table(table, schema, **asdict(layout))
        return _append(made, rows, MAIN, once=True, dry_run=False)
    with show_progress(f"reading {counted(len(rows.paths), 'file')} into {table}") as steps:
        filled = lake.create_table_as(table, rows.fitting(schema, steps), **asdict(layout))
    return [_Ingested(filled.metadata.current_snapshot)]


def _append(table: Table, rows: RowFiles, branch: str, *, once: bool, dry_run: bool) -> list[_Ingested]:
    with show_progress(f"reading {counted(len(rows.paths), 'file')} into {table.name}") as steps:
        stream = rows.fitting(table.schema, steps)  # checks the columns of all files
        if dry_run:
            return []
        if not once:
            return [_Ingested(table.append(stream))]
        return [_append_once(table, replace(rows, paths=[path]), branch, steps) for path in rows.paths]


def _append_once(table: Table, rows: RowFiles, branch: str, steps: Steps) -> _Ingested:
    """Append the one file of `rows`, unless it was before. Of two runs at once one does: the commit checks the key."""
    (path,) = rows.paths
    key = f"ingest:{_digest(path)}"
    if (landed := find_landed(table.refresh(), branch, key)) is not None:
        return _Ingested(landed.snapshot, path.name, was_there=True)
    made = table.append(rows.fitting(table.schema, steps), idempotency_key=key)
    # Only the snapshot of this run says which engine wrote it, not that of a run at the same time.
    return _Ingested(made, path.name, was_there=made is not None and made.engine is None)


def _digest(path: Path) -> str:
    """Identify a file by its name and contents."""
    digest = hashlib.sha256(path.name.encode(errors="surrogateescape") + b"\0")
    with path.open("rb") as file:
        while block := file.read(_BLOCK_BYTES):
            digest.update(block)
    return digest.hexdigest()


def _report_plan(settings: Settings, table: str, paths: Sequence[Path], *, is_new: bool) -> None:
    if settings.as_json:
        print_json({"table": table, "created": False, "dry-run": True, "files": [str(path) for path in paths]})
    else:
        print_text(f"would {'create' if is_new else 'append to'} {table} from {counted(len(paths), 'file')}")


def _report(settings: Settings, table: str, done: Sequence[_Ingested], *, created: bool, once: bool) -> None:
    rows = sum(each.number("added-records") for each in done)
    files = sum(each.number("added-data-files") for each in done)
    made = [each.snapshot for each in done if each.snapshot is not None and not each.was_there]
    skipped = [each for each in done if each.was_there]
    if settings.as_json:
        identity = str(made[-1].snapshot_id) if made else None
        value = {"table": table, "created": created, "snapshot-id": identity, "rows": rows, "data-files": files}
        print_json({**value, **({"files": [each.as_dict() for each in done]} if once else {})})
        return
    if made:
        appended = f"{counted(rows, 'row')} to {table} in {counted(files, 'data file')}"
        name = f"snapshot {made[0].snapshot_id}" if len(made) == 1 else f"{len(made)} snapshots"
        print_text(f"appended {appended} as {name}")
    elif created:
        print_text(f"created {table} without rows")
    elif not skipped:
        print_text(f"no rows to append to {table}")
    if skipped:
        print_text(f"skipped {counted(len(skipped), 'file')}, ingested into {table} before")
