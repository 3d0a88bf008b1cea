"""Settings that all commands share: the lake, --json and --debug, before or after the name of the command.

A command takes the settings with `@click.pass_obj`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import rich_click as click

from icefield.cli.pairs import parse_pairs
from icefield.config.file import CONFIG_FILE
from icefield.config.sources import (
    LAKE_VARIABLE,
    PROPERTIES_VARIABLE,
    ROOTS_VARIABLE,
    WAREHOUSE_VARIABLE,
    read_roots,
)

DEBUG_VARIABLE = "ICEFIELD_DEBUG"
AUTHOR_VARIABLE = "ICEFIELD_AUTHOR"
DEFAULT_LAKE = "lake"


@dataclass
class Settings:
    """The settings of one run of the command line, filled in while its options are parsed."""

    lake: str | None = None
    warehouse: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict, repr=False)
    roots: tuple[str, ...] = ()
    create: bool = False
    as_json: bool = False
    message: str | None = None
    author: str | None = None
    debug: bool = False


def settings_from(environment: Mapping[str, str]) -> Settings:
    """Read the defaults that do not depend on the lake; the rest is read with the lake."""
    return Settings(
        roots=read_roots(environment.get(ROOTS_VARIABLE, "")),
        author=environment.get(AUTHOR_VARIABLE) or None,
        debug=environment.get(DEBUG_VARIABLE, "") not in ("", "0"),
    )


class LakeCommand(click.RichCommand):
    """A command with the shared options."""

    def __init__(self, name: str | None = None, **kwargs: Any) -> None:
        super().__init__(name=name, **kwargs)
        self.params.extend(_shared_options())


class SnapshotCommand(LakeCommand):
    """A command that adds snapshots, with the options that say why and by whom."""

    def __init__(self, name: str | None = None, **kwargs: Any) -> None:
        super().__init__(name=name, **kwargs)
        self.params.extend(_note_options())


class LakeGroup(click.RichGroup):
    """The group of all commands, with the shared options."""

    def __init__(self, name: str | None = None, **kwargs: Any) -> None:
        super().__init__(name=name, **{"invoke_without_command": True, **kwargs})
        self.params.extend(_shared_options())

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command that is named; show the help if none is."""
        result = super().invoke(ctx)
        if ctx.invoked_subcommand is None:
            click.echo(ctx.get_help())
        return result

    def list_commands(self, ctx: click.Context) -> list[str]:
        """List the commands in the order in which they were added."""
        return list(self.commands)


def _shared_options() -> list[click.Option]:
    # The environment is not an envvar of the options: it would override an option given to the group.
    return [*_lake_options(), _create_option(), *_output_options()]


def _lake_options() -> list[click.Option]:
    return [
        click.RichOption(
            ["--lake"],
            metavar="LAKE",
            expose_value=False,
            callback=_keep("lake"),
            help=f"A directory, a URL, or a name from {CONFIG_FILE}. "
            f"[default: ${LAKE_VARIABLE}, else the file's, else '{DEFAULT_LAKE}']",
        ),
        click.RichOption(
            ["--warehouse"],
            metavar="LOCATION",
            expose_value=False,
            callback=_keep("warehouse"),
            help=f"The location of the tables, for a catalog in a database. [default: ${WAREHOUSE_VARIABLE}]",
        ),
        click.RichOption(
            ["--lake-property", "lake_properties"],
            metavar="KEY=VALUE",
            multiple=True,
            default=None,
            expose_value=False,
            callback=_keep_properties,
            help=f"A property of the lake's clients, such as s3.endpoint. May be repeated. "
            f"[default: ${PROPERTIES_VARIABLE}]",
        ),
        click.RichOption(
            ["--root", "roots"],
            metavar="DIR",
            multiple=True,
            default=None,
            expose_value=False,
            callback=_keep("roots"),
            help=f"A further directory that tables may have files in. May be repeated. [default: ${ROOTS_VARIABLE}]",
        ),
    ]


def _note_options() -> list[click.Option]:
    return [
        click.RichOption(
            ["--message"],
            metavar="TEXT",
            expose_value=False,
            callback=_keep("message"),
            help="Why; kept in the summaries of the new snapshots, and shown by `icefield log`.",
        ),
        click.RichOption(
            ["--author"],
            metavar="NAME",
            expose_value=False,
            callback=_keep("author"),
            help=f"Who; kept in the same place. [default: ${AUTHOR_VARIABLE}]",
        ),
    ]


def _create_option() -> click.Option:
    return click.RichOption(
        ["--create-catalog"],
        is_flag=True,
        default=None,
        expose_value=False,
        callback=_keep("create"),
        help="Create an empty catalog, even beside tables that belong to a lost one.",
    )


def _output_options() -> list[click.Option]:
    return [
        click.RichOption(
            ["--json", "as_json"],
            is_flag=True,
            default=None,
            expose_value=False,
            callback=_keep("as_json"),
            help="Write JSON to stdout; 64-bit ids are strings.",
        ),
        click.RichOption(
            ["--debug"],
            is_flag=True,
            default=None,
            expose_value=False,
            callback=_keep("debug"),
            help="Show the traceback of an error.",
        ),
    ]


def _keep(name: str) -> Callable[[click.Context, click.Parameter, Any], None]:
    def keep(context: click.Context, _: click.Parameter, value: Any) -> None:
        if value is not None and value != ():
            setattr(context.ensure_object(Settings), name, value)

    return keep


def _keep_properties(context: click.Context, option: click.Parameter, strings: tuple[str, ...] | None) -> None:
    _keep("properties")(context, option, parse_pairs(context, option, strings or ()) or None)
