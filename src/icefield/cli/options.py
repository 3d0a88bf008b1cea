"""Options that several commands share."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import rich_click as click

from icefield.cli.lakes import open_lake
from icefield.cli.pairs import parse_pairs
from icefield.errors import IcefieldError
from icefield.model.snapshot import MAIN
from icefield.properties.format_versions import FORMAT_VERSION, FORMAT_VERSIONS

F = TypeVar("F", bound=Callable[..., Any])


def table_argument() -> Callable[[F], F]:
    """The table that a command works on."""
    return click.argument("table", metavar="TABLE", shell_complete=_complete_table)


def _complete_table(context: click.Context, _: click.Parameter, beginning: str) -> list[str]:
    """Return the tables whose names begin so; none if the lake cannot be read, since nobody sees an error here."""
    try:
        with open_lake(context.obj) as lake:
            return [name for name in map(str, lake.tables()) if name.startswith(beginning)]
    except IcefieldError:
        return []


def where_option() -> Callable[[F], F]:
    """The filter."""
    return click.option("--where", metavar="FILTER", help="A filter, such as \"amount > 10 AND country = 'DE'\".")


def branch_option() -> Callable[[F], F]:
    """The branch that a command changes."""
    return click.option("--branch", metavar="BRANCH", default=MAIN, show_default=True, help="The branch to change.")


def key_option() -> Callable[[F], F]:
    """The key under which a change is made once."""
    return click.option(
        "--key", metavar="TEXT", help="An idempotency key: a change that was committed under it is not made again."
    )


def merge_schema_option() -> Callable[[F], F]:
    """New columns of the rows."""
    return click.option(
        "--merge-schema", is_flag=True, help="Add the columns that only the files have, in the same commit."
    )


def format_version_option() -> Callable[[F], F]:
    """The format version of a new table."""
    return click.option(
        "--format-version",
        type=click.IntRange(min(FORMAT_VERSIONS), max(FORMAT_VERSIONS)),
        help=f"The version of the table format. [default: {FORMAT_VERSION}]",
    )


def property_option() -> Callable[[F], F]:
    """The properties of what is created."""
    return click.option(
        "--property",
        "properties",
        metavar="KEY=VALUE",
        multiple=True,
        callback=parse_pairs,
        help="A property of it. May be repeated.",
    )


def location_option() -> Callable[[F], F]:
    """Where a new table is."""
    return click.option("--location", help="Where the files go. [default: a new directory in the warehouse]")


def as_of_option() -> Callable[[F], F]:
    """The version to read."""
    return click.option(
        "--as-of",
        metavar="VERSION",
        help="The version to read: a snapshot id, a time such as 2026-01-31T12:00:00Z, a branch or a tag.",
    )


def html_option(what: str) -> Callable[[F], F]:
    """A file for a page with pictures."""
    return click.option(
        "--html",
        metavar="FILE",
        type=click.Path(dir_okay=False, path_type=Path),
        help=f"Write {what} as an HTML page, in place of text; an existing file is replaced.",
    )


def version_argument(name: str) -> Callable[[F], F]:
    """A version of a table, which may be left out."""
    return click.argument(name, metavar=f"[{name.upper()}]", required=False)


def select_option() -> Callable[[F], F]:
    """The columns to read."""
    return click.option(
        "--select", metavar="COLUMNS", callback=_parse_select, help="The columns to read, separated by commas."
    )


def definition_options() -> Callable[[F], F]:
    """The layout of a new table."""

    def decorate(command: F) -> F:
        for option in reversed(_DEFINITION):
            command = option(command)
        return command

    return decorate


def _parse_select(_: click.Context, __: click.Parameter, text: str | None) -> list[str] | None:
    return None if text is None else [name.strip() for name in text.split(",")]


_DEFINITION = (
    click.option(
        "--partition-by",
        metavar="TRANSFORM",
        multiple=True,
        help="A column or a transform of one, such as day(ts) or bucket(16, id). May be repeated.",
    ),
    click.option("--order-by", metavar="TERM", multiple=True, help="A sort term, such as 'ts desc'. May be repeated."),
    property_option(),
)
