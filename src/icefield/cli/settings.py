"""What every command shares: --lake, --root, --json and --debug, before or after the name of the command.

A command takes the settings with `@click.pass_obj`.
"""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import rich_click as click

LAKE_VARIABLE = "ICEFIELD_LAKE"
ROOTS_VARIABLE = "ICEFIELD_ROOTS"
DEBUG_VARIABLE = "ICEFIELD_DEBUG"
DEFAULT_LAKE = "lake"


@dataclass
class Settings:
    """What one run of the command line was told; filled in while its options are parsed."""

    lake: str = DEFAULT_LAKE
    roots: tuple[str, ...] = ()
    as_json: bool = False
    debug: bool = False


def settings_from(environment: Mapping[str, str]) -> Settings:
    """Read the defaults that the environment gives."""
    return Settings(
        lake=environment.get(LAKE_VARIABLE) or DEFAULT_LAKE,
        roots=tuple(root for root in environment.get(ROOTS_VARIABLE, "").split(os.pathsep) if root),
        debug=environment.get(DEBUG_VARIABLE, "") not in ("", "0"),
    )


class LakeCommand(click.RichCommand):
    """A command with the shared options."""

    def __init__(self, name: str | None = None, **kwargs: Any) -> None:
        super().__init__(name=name, **kwargs)
        self.params.extend(_shared_options())


class LakeGroup(click.RichGroup):
    """The group of all commands, with the shared options."""

    def __init__(self, name: str | None = None, **kwargs: Any) -> None:
        super().__init__(name=name, **kwargs)
        self.params.extend(_shared_options())

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Name the commands in the order they were added in."""
        return list(self.commands)


def _shared_options() -> list[click.Option]:
    # The environment is read in settings_from: as an envvar of the option it would overrule one given to the group.
    return [
        click.RichOption(
            ["--lake"],
            metavar="DIR",
            expose_value=False,
            callback=_keep("lake"),
            help=f"The directory of the lake. [default: ${LAKE_VARIABLE}, else '{DEFAULT_LAKE}']",
        ),
        click.RichOption(
            ["--root", "roots"],
            metavar="DIR",
            multiple=True,
            default=None,
            expose_value=False,
            callback=_keep("roots"),
            help=f"A further directory that tables may have files in. May be given again. [default: ${ROOTS_VARIABLE}]",
        ),
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
