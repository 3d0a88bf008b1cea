"""icefield append, overwrite, delete-files: write the rows of files to a branch, and remove data files."""

from typing import Any

import rich_click as click

from icefield.cli.files.rows_of_files import RowFiles
from icefield.cli.files.sources import files_argument, format_options, open_sources, row_format
from icefield.cli.lakes import open_branch, open_lake
from icefield.cli.options import branch_option, key_option, merge_schema_option, table_argument, where_option
from icefield.cli.output import counted, print_json, print_text
from icefield.cli.pairs import parse_pairs
from icefield.cli.progress import show_progress
from icefield.cli.questions import ask_first, asking_options
from icefield.cli.settings import Settings, SnapshotCommand
from icefield.cli.snapshot_facts import summary_number
from icefield.errors import InvalidInput
from icefield.model.snapshot import Snapshot
from icefield.table.table import Table

_option = click.option(
    "--option", "options", metavar="KEY=VALUE", multiple=True, callback=parse_pairs,
    help="A write property for this write, such as compression-codec=zstd. May be repeated.",
)  # fmt: skip


@click.command(cls=SnapshotCommand)
@table_argument()
@files_argument()
@branch_option()
@key_option()
@merge_schema_option()
@_option
@format_options()
@click.pass_obj
def append(  # noqa: PLR0913 - one parameter per option
    settings: Settings,
    /,
    table: str,
    files: tuple[str, ...],
    *,
    branch: str,
    key: str | None,
    merge_schema: bool,
    options: dict[str, str],
    **form: Any,
) -> None:
    """Append the rows of files to a table, or to a branch of it, in one commit.

    Files are read as by `icefield ingest`, which can also create the table and skip files that it has read before.
    """
    read_as = row_format(**form)
    with open_lake(settings) as lake, open_sources(files, read_as) as paths:
        handle, rows = open_branch(lake, table, branch), RowFiles(paths, read_as)
        rows.show_formats()
        schema = rows.with_new_columns(handle.schema) if merge_schema else handle.schema
        with show_progress(f"reading {counted(len(paths), 'file')} into {handle.name}") as steps:
            made = handle.append(
                rows.fitting(schema, steps), idempotency_key=key, options=options, merge_schema=merge_schema
            )
    _report(settings, table, made, "appended")


@click.command(cls=SnapshotCommand)
@table_argument()
@files_argument()
@where_option()
@click.option("--partitions", is_flag=True, help="Replace the partitions that the rows belong to.")
@click.option("--data-file", "data_files", metavar="LOCATION", multiple=True, help="Replace this data file.")
@click.option("--no-check-rows", is_flag=True, help="Do not check that the new rows match --where.")
@branch_option()
@key_option()
@merge_schema_option()
@_option
@format_options()
@asking_options()
@click.pass_obj
def overwrite(  # noqa: PLR0913 - one parameter per option
    settings: Settings,
    /,
    table: str,
    files: tuple[str, ...],
    *,
    where: str | None,
    partitions: bool,
    data_files: tuple[str, ...],
    no_check_rows: bool,
    branch: str,
    key: str | None,
    merge_schema: bool,
    options: dict[str, str],
    dry_run: bool,
    yes: bool,
    **form: Any,
) -> None:
    """Replace rows of a table by the rows of files, in one commit: all, or those that match --where.

    The new rows must match the filter. Without --yes, it shows how many rows would be replaced, and asks. Older
    snapshots keep the rows until they expire.
    """
    if sum([where is not None, partitions, bool(data_files)]) > 1:
        raise InvalidInput("--where, --partitions and --data-file exclude each other")
    if partitions and merge_schema:
        raise InvalidInput("--partitions and --merge-schema exclude each other", hint="Add the columns with `evolve`")
    read_as = row_format(**form)
    with open_lake(settings) as lake, open_sources(files, read_as) as paths:
        handle, rows = open_branch(lake, table, branch), RowFiles(paths, read_as)
        rows.show_formats()
        schema = rows.with_new_columns(handle.schema) if merge_schema else handle.schema
        with show_progress(f"reading {counted(len(paths), 'file')} into {handle.name}") as steps:
            stream = rows.fitting(schema, steps)  # checks the columns of all files
            what = _what_is_replaced(handle, where, data_files, partitions=partitions)
            if not ask_first(what, "Replace them?", "nothing was changed", dry_run=dry_run, yes=yes):
                _report_plan(settings, table, what)
                return
            more: dict[str, Any] = {"idempotency_key": key, "options": options}
            if partitions:
                made = handle.overwrite_partitions(stream, **more)
            else:
                more |= {"merge_schema": merge_schema, "check_rows": not no_check_rows}
                made = handle.overwrite(stream, where, files=data_files or None, **more)
    _report(settings, table, made, "wrote")


@click.command(cls=SnapshotCommand)
@table_argument()
@click.argument("locations", metavar="LOCATION...", nargs=-1, required=True)
@branch_option()
@key_option()
@asking_options()
@click.pass_obj
def delete_files(  # noqa: PLR0913 - one parameter per option
    settings: Settings,
    table: str,
    locations: tuple[str, ...],
    *,
    branch: str,
    key: str | None,
    dry_run: bool,
    yes: bool,
) -> None:
    """Remove data files, named by location, from a table in one commit. `icefield files --json` lists locations.

    Older snapshots keep the files until they expire.
    """
    with open_lake(settings) as lake:
        handle = open_branch(lake, table, branch)
        what = _what_is_replaced(handle, None, locations, partitions=False)
        if not ask_first(what, "Remove them?", "nothing was changed", dry_run=dry_run, yes=yes):
            _report_plan(settings, table, what)
            return
        made = handle.delete_files(locations, idempotency_key=key)
    _report(settings, table, made, "wrote")


def _what_is_replaced(table: Table, where: str | None, files: tuple[str, ...], *, partitions: bool) -> str:
    if partitions:
        return f"every partition of {table.name} that the rows belong to is replaced"
    if files:
        known = {row["file_path"]: row["record_count"] for row in table.scan().files().to_pylist()}
        missing = [file for file in files if file not in known]
        if missing:
            raise InvalidInput(f"{table.name} has no data file {missing[0]}", hint="See `icefield files --json`")
        rows = sum(known[file] for file in files)
        return f"{counted(len(files), 'data file')} with {counted(rows, 'row')} of {table.name}"
    return f"{counted(table.scan(where).count(), 'row')} of {table.name}"


def _report_plan(settings: Settings, table: str, what: str) -> None:
    if settings.as_json:
        print_json({"table": table, "dry-run": True, "replaces": what})
    else:
        print_text(f"would replace or remove {what}")


def _report(settings: Settings, table: str, made: Snapshot | None, verb: str) -> None:
    names = ("added-records", "deleted-records", "added-data-files", "deleted-data-files")
    counts = {name: (summary_number(made, name) or 0) if made else 0 for name in names}
    if settings.as_json:
        print_json({"table": table, "snapshot-id": None if made is None else str(made.snapshot_id), **counts})
    elif made is None:
        print_text(f"nothing to do in {table}")
    else:
        removed = counts["deleted-records"]
        gone = f", removed {counted(removed, 'row')}" if removed else ""
        print_text(f"{verb} {counted(counts['added-records'], 'row')}{gone} in {table} as snapshot {made.snapshot_id}")
