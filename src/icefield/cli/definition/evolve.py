"""icefield evolve: change columns, partition fields and sort order, one commit for each command."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import pyarrow as pa
import rich_click as click

from icefield.cli.commands.describe import order_texts, partition_texts
from icefield.cli.lakes import open_lake
from icefield.cli.options import table_argument
from icefield.cli.output import print_json, print_section, print_text
from icefield.cli.questions import ask_first, asking_options
from icefield.cli.settings import LakeCommand, LakeGroup, Settings
from icefield.dml.evolution import TableEvolution
from icefield.errors import InvalidInput
from icefield.table.reading.readable import nanoseconds_explained
from icefield.types.arrow import arrow_type
from icefield.types.datatypes import PrimitiveType, StringType, Type
from icefield.types.text import parse_type

F = TypeVar("F", bound=Callable[..., Any])

_dry_run = click.option("--dry-run", is_flag=True, help="Show what would be done, and change nothing.")
_column = click.argument("column", metavar="COLUMN")


def _position(command: F) -> F:
    for option in (
        click.option("--before", metavar="COLUMN", help="Put it before this column."),
        click.option("--after", metavar="COLUMN", help="Put it after this column."),
        click.option("--first", is_flag=True, help="Put it first."),
    ):
        command = option(command)
    return command


@click.group(cls=LakeGroup)
def evolve() -> None:
    """Change columns, partition fields and sort order of a table. No data file is rewritten.

    Columns inside structs are named with dots: address.city. Several steps in one commit are possible in Python
    (table.evolve) and in SQL (ALTER TABLE).
    """


@evolve.command(cls=LakeCommand)
@table_argument()
@_column
@click.argument("kind", metavar="TYPE")
@click.option("--doc", metavar="TEXT", help="A description.")
@click.option("--default", metavar="VALUE", help="The value in rows that do not have the column (format version 3).")
@click.option("--required", is_flag=True, help="Do not allow nulls; needs --default.")
@_position
@_dry_run
@click.pass_obj
def add(
    settings: Settings, /, table: str, column: str, kind: str, default: str | None, *, dry_run: bool, **options: Any
) -> None:
    """Add a column, such as: icefield evolve add shop.orders note string --after id."""
    value = None if default is None else _value(default, parse_type(kind))
    _run(settings, table, lambda change: change.add_column(column, kind, default=value, **options), dry_run=dry_run)


@evolve.command(cls=LakeCommand)
@table_argument()
@_column
@click.argument("name", metavar="NEW_NAME")
@_dry_run
@click.pass_obj
def rename(settings: Settings, table: str, column: str, name: str, *, dry_run: bool) -> None:
    """Rename a column."""
    _run(settings, table, lambda change: change.rename_column(column, name), dry_run=dry_run)


@evolve.command(cls=LakeCommand)
@table_argument()
@_column
@asking_options()
@click.pass_obj
def drop(settings: Settings, table: str, column: str, *, dry_run: bool, yes: bool) -> None:
    """Drop a column. Older snapshots keep it until they expire."""
    what = f"column {column} of {table} is dropped; older snapshots keep it until they expire"

    def step(change: TableEvolution) -> None:
        change.drop_column(column)
        ask_first(what, "Drop it?", "nothing was changed", dry_run=dry_run, yes=yes)

    _run(settings, table, step, dry_run=dry_run)


@evolve.command(cls=LakeCommand)
@table_argument()
@_column
@click.argument("kind", metavar="TYPE")
@_dry_run
@click.pass_obj
def widen(settings: Settings, table: str, column: str, kind: str, *, dry_run: bool) -> None:
    """Change the type of a column to a wider one: int to long, float to double, a decimal to more digits."""
    _run(settings, table, lambda change: change.update_column_type(column, kind), dry_run=dry_run)


@evolve.command(cls=LakeCommand)
@table_argument()
@_column
@_position
@_dry_run
@click.pass_obj
def move(settings: Settings, /, table: str, column: str, *, dry_run: bool, **position: Any) -> None:
    """Move a column: --first, --after or --before another one."""
    _run(settings, table, lambda change: change.move_column(column, **position), dry_run=dry_run)


@evolve.command(cls=LakeCommand)
@table_argument()
@_column
@click.option("--optional", is_flag=True, help="Allow nulls.")
@click.option("--doc", metavar="TEXT", help="The description; an empty text removes it.")
@click.option("--default", metavar="VALUE", help="The value for new rows without the column (format version 3).")
@_dry_run
@click.pass_obj
def alter(  # noqa: PLR0913 - one parameter per option
    settings: Settings,
    table: str,
    column: str,
    *,
    optional: bool,
    doc: str | None,
    default: str | None,
    dry_run: bool,
) -> None:
    """Change whether a column allows nulls, its description, or its default."""
    if not optional and doc is None and default is None:
        raise InvalidInput("nothing to change", hint="Give --optional, --doc or --default")

    def step(change: TableEvolution) -> None:
        if optional:
            change.make_optional(column)
        if doc is not None:
            change.set_doc(column, doc or None)
        if default is not None:
            change.set_default(column, _value(default, change.schema.find_field(column).type))

    _run(settings, table, step, dry_run=dry_run)


@evolve.command(cls=LakeCommand)
@table_argument()
@click.argument("columns", metavar="COLUMN...", nargs=-1)
@click.option("--drop", "drops", is_flag=True, help="Remove these columns from the key instead.")
@_dry_run
@click.pass_obj
def key(settings: Settings, table: str, columns: tuple[str, ...], *, drops: bool, dry_run: bool) -> None:
    """Set the columns that identify a row, which upsert uses as its key; without columns, remove the key."""
    if drops:
        _run(settings, table, lambda change: change.drop_identifier_fields(columns), dry_run=dry_run)
    else:
        _run(settings, table, lambda change: change.set_identifier_fields(columns), dry_run=dry_run)


@evolve.command(cls=LakeCommand)
@table_argument()
@click.argument("schema", metavar="SCHEMA")
@_dry_run
@click.pass_obj
def union(settings: Settings, table: str, schema: str, *, dry_run: bool) -> None:
    """Add the columns that only SCHEMA has, and widen those that are wider there.

    SCHEMA is text such as 'id long, note string'.
    """
    _run(settings, table, lambda change: change.union_by_name(schema), dry_run=dry_run)


@evolve.command(cls=LakeCommand)
@table_argument()
@click.option("--add", "adds", metavar="TRANSFORM", multiple=True, help="A field to add, such as 'bucket(16, id)'.")
@click.option("--drop", "drops", metavar="NAME", multiple=True, help="The name of a field to drop, such as ts_day.")
@click.option("--rename", "renames", metavar="OLD=NEW", multiple=True, help="A field to rename.")
@_dry_run
@click.pass_obj
def partition(
    settings: Settings,
    table: str,
    *,
    adds: Sequence[str],
    drops: Sequence[str],
    renames: Sequence[str],
    dry_run: bool,
) -> None:
    """Change the partition fields of new files: --drop first, then --rename, then --add. Existing files stay."""
    pairs = [text.partition("=") for text in renames]
    if any(not (old and new) for old, _, new in pairs):
        raise InvalidInput("--rename has no old or no new name", hint="Write --rename old=new")
    if not (adds or drops or renames):
        raise InvalidInput("nothing to change", hint="Give --add, --drop or --rename")

    def step(change: TableEvolution) -> None:
        for name in drops:
            change.drop_partition_field(name)
        for old, _, new in pairs:
            change.rename_partition_field(old, new)
        for text in adds:
            change.add_partition_field(text)

    _run(settings, table, step, dry_run=dry_run)


@evolve.command(cls=LakeCommand)
@table_argument()
@click.argument("terms", metavar="TERM...", nargs=-1)
@_dry_run
@click.pass_obj
def order(settings: Settings, table: str, terms: tuple[str, ...], *, dry_run: bool) -> None:
    """Set the sort order of new files, such as 'ts desc' id; without terms, remove it."""
    _run(settings, table, lambda change: change.set_sort_order(terms), dry_run=dry_run)


def _run(settings: Settings, table: str, step: Callable[[TableEvolution], None], *, dry_run: bool) -> None:
    with open_lake(settings) as lake:
        handle = lake.table(table)
        with handle.evolve() as change:
            step(change)
            after = change.preview()
            if dry_run:
                change.steps.clear()
    columns = [(f.name, str(f.type), "not null" if f.required else "", f.doc or "") for f in after.schema.fields]
    fields, order_by = partition_texts(after), list(order_texts(after))
    if settings.as_json:
        shown = [
            {"name": f.name, "type": str(f.type), "required": f.required, "doc": f.doc} for f in after.schema.fields
        ]
        value = {"table": handle.name, "changed": not dry_run, "columns": shown}
        print_json({**value, "partition-by": fields, "order-by": order_by})
        return
    print_text(f"{'would change' if dry_run else 'changed'} {handle.name}")
    print_section("columns", columns)
    print_section("partition fields", ((text,) for text in fields))
    print_section("sort order", ((text,) for text in order_by))


def _value(text: str, kind: Type) -> object:
    """Read the value of a column from text; nested values are left to the column to refuse."""
    if isinstance(kind, StringType) or not isinstance(kind, PrimitiveType):
        return text
    try:
        with nanoseconds_explained():
            return pa.scalar(text).cast(arrow_type(kind)).as_py()
    except (pa.ArrowException, NotImplementedError) as error:
        raise InvalidInput(f"{text!r} is not a value of type {kind}") from error
