"""icefield delete, update, upsert, merge: change rows of a table, without a JVM."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
import rich_click as click

from icefield.cli.commands.tables import confirm
from icefield.cli.lakes import open_lake
from icefield.cli.options import parse_pairs, table_argument, where_option
from icefield.cli.output import print_json, print_text, talk
from icefield.cli.row_files import read_row_file, row_file_schema
from icefield.cli.settings import LakeCommand, Settings
from icefield.dml.change import MODES
from icefield.dml.equality import EQUALITY
from icefield.dml.result import ChangeResult
from icefield.errors import InvalidInput
from icefield.table.table import Table
from icefield.types.arrow import arrow_schema, schema_from_arrow
from icefield.types.schema import Schema

F = TypeVar("F", bound=Callable[..., Any])


def _change_options(*more_modes: str) -> Callable[[F], F]:
    """The options of every change. more_modes: those that only this one has."""

    def decorate(command: F) -> F:
        command = click.option("--dry-run", is_flag=True, help="Change nothing; show what would be done.")(command)
        modes = click.Choice((*MODES, *more_modes))
        return click.option("--mode", type=modes, help="How old rows are deleted, instead of the table's mode.")(
            command
        )

    return decorate


_files = click.argument("files", metavar="FILE...", nargs=-1, required=True, type=click.Path(path_type=Path))
_on = click.option("--on", metavar="COLUMNS", help="The key columns, separated by commas.")
_set = click.option(
    "--set", "values", metavar="COLUMN=VALUE", multiple=True, callback=parse_pairs,
    help="A column and its new value in SQL, such as \"qty=qty + 1\" or \"note='late'\". May be repeated.",
)  # fmt: skip


@click.command(cls=LakeCommand)
@table_argument()
@where_option()
@_change_options()
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.pass_obj
def delete(settings: Settings, table: str, where: str | None, *, dry_run: bool, mode: str | None, yes: bool) -> None:
    """Delete the rows that match a filter.

    Older snapshots keep the rows until they expire. Without --yes, it shows what would be deleted, and asks.
    """
    if where is None:
        raise InvalidInput("delete needs a filter", hint="Add --where, or --where TRUE for all rows")
    with open_lake(settings) as lake:
        handle = lake.table(table)
        _ask(settings, lambda dry: handle.delete(where, dry_run=dry, mode=mode), dry_run=dry_run, yes=yes)


@click.command(cls=LakeCommand)
@table_argument()
@_set
@where_option()
@_change_options()
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.pass_obj
def update(  # noqa: PLR0913 - one parameter per option
    settings: Settings,
    table: str,
    values: dict[str, str],
    where: str | None,
    *,
    dry_run: bool,
    mode: str | None,
    yes: bool,
) -> None:
    """Change columns of the rows that match a filter, or of all rows.

    Without --yes, it shows what would be changed, and asks.
    """
    if not values:
        raise InvalidInput("update needs a new value", hint="Add --set 'column=value'")
    with open_lake(settings) as lake:
        handle = lake.table(table)
        _ask(settings, lambda dry: handle.update(values, where, dry_run=dry, mode=mode), dry_run=dry_run, yes=yes)


@click.command(cls=LakeCommand)
@table_argument()
@_files
@_on
@_change_options(EQUALITY)
@click.pass_obj
def upsert(
    settings: Settings, table: str, files: tuple[Path, ...], on: str | None, *, dry_run: bool, mode: str | None
) -> None:
    """Update the rows that have the key of a row in the files, and insert the others.

    All files go into one commit. Columns that the files do not have keep their values. Without --on, the key is the
    table's identifier fields. --mode equality reads nothing of the table, and needs all columns.
    """
    with open_lake(settings) as lake:
        handle = lake.table(table)
        rows = _read_source(handle, files)
        _report(settings, handle.upsert(rows, _columns(on), dry_run=dry_run, mode=mode))


@click.command(cls=LakeCommand)
@table_argument()
@_files
@_on
@click.option("--condition", metavar="SQL", help="The condition of a match, instead of --on.")
@click.option("--delete-when", metavar="SQL", help="Delete matched rows that this is true for.")
@click.option("--update-all", is_flag=True, help="Update all columns of matched rows.")
@_set
@click.option("--insert-all", is_flag=True, help="Insert rows that match nothing.")
@click.option("--delete-missing", is_flag=True, help="Delete rows of the table that match nothing.")
@_change_options()
@click.pass_obj
def merge(  # noqa: PLR0913 - one parameter per option
    settings: Settings,
    table: str,
    files: tuple[Path, ...],
    on: str | None,
    *,
    condition: str | None,
    delete_when: str | None,
    update_all: bool,
    values: dict[str, str],
    insert_all: bool,
    delete_missing: bool,
    dry_run: bool,
    mode: str | None,
) -> None:
    """Match the rows of files with rows of a table, and update, delete or insert.

    The clauses apply in this order: --delete-when, then --update-all or --set, --insert-all, --delete-missing. In SQL,
    the two sides are `target` and `source`: --set "qty=target.qty + source.qty".
    """
    if (on is None) == (condition is None):
        raise InvalidInput("merge needs --on or --condition, and not both")
    if update_all and values:
        raise InvalidInput("--update-all and --set exclude each other")
    with open_lake(settings) as lake:
        handle = lake.table(table)
        builder = handle.merge(_read_source(handle, files), condition or _columns(on), mode=mode)
        if delete_when is not None:
            builder = builder.when_matched(delete_when).delete()
        if update_all:
            builder = builder.when_matched().update_all()
        if values:
            builder = builder.when_matched().update(values)
        if insert_all:
            builder = builder.when_not_matched().insert_all()
        if delete_missing:
            builder = builder.when_not_matched_by_source().delete()
        _report(settings, builder.execute(dry_run=dry_run))


def _ask(settings: Settings, run: Callable[[bool], ChangeResult], *, dry_run: bool, yes: bool) -> None:
    """Show what a change would do, and ask before it is done."""
    if not dry_run and not yes:
        talk(str(run(True)))
        confirm("Change the table?", "nothing was changed")
    _report(settings, run(dry_run))


def _report(settings: Settings, result: ChangeResult) -> None:
    if settings.as_json:
        print_json(result.as_dict())
    else:
        print_text(str(result))


def _columns(text: str | None) -> list[str] | None:
    return None if text is None else [name.strip() for name in text.split(",")]


def _read_source(table: Table, files: Sequence[Path]) -> pa.Table:
    """Read the rows of files, with the table's types for columns that it has."""
    schemas = [_columns_of_file(path, table.schema) for path in files]
    for path, schema in zip(files[1:], schemas[1:], strict=True):
        if schema.column_names != schemas[0].column_names:
            raise InvalidInput(f"{path} has other columns than {files[0]}", hint="Run one command for each")
    rows = [
        pa.Table.from_batches([batch])
        for path, schema in zip(files, schemas, strict=True)
        for batch in read_row_file(path, schema)
    ]
    try:
        none = pa.Table.from_batches([], arrow_schema(schemas[0]))
        return pa.concat_tables(rows or [none], promote_options="permissive")
    except pa.ArrowTypeError as error:
        raise InvalidInput(f"the files have different types: {error}", hint="Run one command for each") from error


def _columns_of_file(path: Path, schema: Schema) -> Schema:
    """Return the columns that a file has: as the table has them, or else as they look."""
    known = {f.name: f for f in schema.fields}
    return schema.derive(known.get(f.name, f) for f in schema_from_arrow(row_file_schema(path, None)).fields)
