"""icefield delete, update, upsert, merge: change rows of a table, without a JVM."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import wraps
from typing import Any, TypeVar, cast

import pyarrow as pa
import rich_click as click

from icefield.cli.files.rows_of_files import RowFiles
from icefield.cli.files.sources import files_argument, format_options, open_sources, row_format
from icefield.cli.lakes import open_branch, open_lake
from icefield.cli.options import branch_option, key_option, merge_schema_option, table_argument, where_option
from icefield.cli.output import counted, print_json, print_text, talk
from icefield.cli.pairs import parse_pairs
from icefield.cli.progress import show_progress
from icefield.cli.questions import confirm
from icefield.cli.settings import Settings, SnapshotCommand
from icefield.dml.change import MODES
from icefield.dml.result import ChangeResult
from icefield.dml.verbs import EQUALITY
from icefield.errors import InvalidInput
from icefield.table.table import Table

F = TypeVar("F", bound=Callable[..., Any])


def _change_options(*more_modes: str) -> Callable[[F], F]:
    """The options of every change. more_modes: those that only this one has."""

    options = (
        click.option(
            "--mode",
            type=click.Choice((*MODES, *more_modes)),
            help="How old rows are deleted, instead of the table's mode.",
        ),
        key_option(),
        click.option(
            "--retry-conflicts",
            metavar="N",
            type=click.IntRange(0),
            default=0,
            help="Run it again up to so many times, on the newest version, if another commit conflicts. [default: 0]",
        ),
        click.option("--dry-run", is_flag=True, help="Change nothing; show what would be done."),
        branch_option(),
    )

    def decorate(command: F) -> F:
        @wraps(command)
        def with_change(*given: Any, mode: str | None, key: str | None, retry_conflicts: int, **more: Any) -> Any:
            change = {"mode": mode, "idempotency_key": key, "retry_conflicts": retry_conflicts}
            return command(*given, change=change, **more)

        wrapped: Any = with_change
        for option in reversed(options):
            wrapped = option(wrapped)
        return cast(F, wrapped)

    return decorate


_on = click.option("--on", metavar="COLUMNS", help="The key columns, separated by commas.")
_set = click.option(
    "--set", "values", metavar="COLUMN=VALUE", multiple=True, callback=parse_pairs,
    help="A column and its new value in SQL, such as \"qty=qty + 1\" or \"note='late'\". May be repeated.",
)  # fmt: skip


@click.command(cls=SnapshotCommand)
@table_argument()
@where_option()
@_change_options()
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.pass_obj
def delete(  # noqa: PLR0913 - one parameter per option
    settings: Settings, table: str, where: str | None, *, branch: str, dry_run: bool, change: dict[str, Any], yes: bool
) -> None:
    """Delete the rows that match a filter.

    Older snapshots keep the rows until they expire. Without --yes, it shows what would be deleted, and asks.
    """
    if where is None:
        raise InvalidInput("delete needs a filter", hint="Add --where, or --where TRUE for all rows")
    with open_lake(settings) as lake:
        handle = open_branch(lake, table, branch)
        _ask(settings, lambda dry: handle.delete(where, dry_run=dry, **change), dry_run=dry_run, yes=yes)


@click.command(cls=SnapshotCommand)
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
    branch: str,
    dry_run: bool,
    change: dict[str, Any],
    yes: bool,
) -> None:
    """Change columns of the rows that match a filter, or of all rows.

    Without --yes, it shows what would be changed, and asks.
    """
    if not values:
        raise InvalidInput("update needs a new value", hint="Add --set 'column=value'")
    with open_lake(settings) as lake:
        handle = open_branch(lake, table, branch)
        _ask(settings, lambda dry: handle.update(values, where, dry_run=dry, **change), dry_run=dry_run, yes=yes)


@click.command(cls=SnapshotCommand)
@table_argument()
@files_argument()
@format_options()
@_on
@merge_schema_option()
@_change_options(EQUALITY)
@click.pass_obj
def upsert(  # noqa: PLR0913 - one parameter per option
    settings: Settings,
    /,
    table: str,
    files: tuple[str, ...],
    on: str | None,
    *,
    merge_schema: bool,
    branch: str,
    dry_run: bool,
    change: dict[str, Any],
    **form: Any,
) -> None:
    """Update the rows that have the key of a row in the files, and insert the others.

    All files go into one commit. Columns that the files do not have keep their values. Without --on, the key is the
    table's identifier fields. --mode equality reads nothing of the table, and needs all columns.
    """
    with open_lake(settings) as lake:
        handle = open_branch(lake, table, branch)
        with _source(handle, files, form) as rows:
            done = handle.upsert(rows, _columns(on), dry_run=dry_run, merge_schema=merge_schema, **change)
            _report(settings, done)


@click.command(cls=SnapshotCommand)
@table_argument()
@files_argument()
@format_options()
@_on
@click.option("--condition", metavar="SQL", help="The condition of a match, instead of --on.")
@click.option("--delete-when", metavar="SQL", help="Delete matched rows that this is true for.")
@click.option("--update-all", is_flag=True, help="Update all columns of matched rows.")
@_set
@click.option("--insert-all", is_flag=True, help="Insert rows that match nothing.")
@click.option("--delete-missing", is_flag=True, help="Delete rows of the table that match nothing.")
@merge_schema_option()
@_change_options()
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.pass_obj
def merge(  # noqa: PLR0913 - one parameter per option
    settings: Settings,
    /,
    table: str,
    files: tuple[str, ...],
    on: str | None,
    *,
    merge_schema: bool,
    branch: str,
    condition: str | None,
    delete_when: str | None,
    update_all: bool,
    values: dict[str, str],
    insert_all: bool,
    delete_missing: bool,
    dry_run: bool,
    yes: bool,
    change: dict[str, Any],
    **form: Any,
) -> None:
    """Match the rows of files with rows of a table, and update, delete or insert.

    The clauses apply in this order: --delete-when, then --update-all or --set, --insert-all, --delete-missing. In SQL,
    the two sides are `target` and `source`: --set "qty=target.qty + source.qty". If it can delete rows, it shows what
    would be changed, and asks.
    """
    if (on is None) == (condition is None):
        raise InvalidInput("merge needs --on or --condition, and not both")
    if update_all and values:
        raise InvalidInput("--update-all and --set exclude each other")
    with open_lake(settings) as lake:
        handle = open_branch(lake, table, branch)
        with _source(handle, files, form) as rows:
            retry_conflicts = change.pop("retry_conflicts")
            builder = handle.merge(rows, condition or _columns(on), merge_schema=merge_schema, **change)
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
            may_delete = delete_missing or delete_when is not None

            def run(dry: bool) -> ChangeResult:  # noqa: FBT001
                return builder.execute(dry_run=dry, retry_conflicts=retry_conflicts)

            _ask(settings, run, dry_run=dry_run, yes=yes or not may_delete)


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


@contextmanager
def _source(table: Table, files: Sequence[str], options: Mapping[str, Any]) -> Iterator[pa.Table]:
    """Read the rows of files, with the table's types for columns that it has."""
    form = row_format(**options)
    with open_sources(files, form) as paths:
        rows = RowFiles(paths, form)
        rows.show_formats()
        with show_progress(f"reading {counted(len(paths), 'file')}") as steps:
            found = rows.read_all(table.schema, steps)
        yield found
