"""What every command shares: --lake, --json and --debug, before or after the name of the command.

A command takes the settings with `@click.pass_obj`, and opens the lake with `open_lake` (which must be there) or with
`make_lake` (which is made if it is not). Raises InvalidInput where there is no lake.
"""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import rich_click as click

from icefield.errors import InvalidInput
from icefield.lake import CATALOG_FILE, Lake, connect

LAKE_VARIABLE = "ICEFIELD_LAKE"
DEBUG_VARIABLE = "ICEFIELD_DEBUG"
DEFAULT_LAKE = "lake"


@dataclass
class Settings:
    """What one run of the command line was told; filled in while its options are parsed."""

    lake: str = DEFAULT_LAKE
    as_json: bool = False
    debug: bool = False


def settings_from(environment: Mapping[str, str]) -> Settings:
    """Read the defaults that the environment gives."""
    return Settings(
        lake=environment.get(LAKE_VARIABLE) or DEFAULT_LAKE,
        debug=environment.get(DEBUG_VARIABLE, "") not in ("", "0"),
    )


def open_lake(settings: Settings) -> Lake:
    """Open the lake that --lake names; a directory without one is not made into one."""
    if not _is_lake(settings.lake):
        raise InvalidInput(
            f"no lake at {settings.lake}",
            hint=f"Name one with --lake DIR or {LAKE_VARIABLE}, or make one with `icefield create` or `icefield demo`",
        )
    return connect(settings.lake)


def make_lake(settings: Settings) -> Lake:
    """Open the lake that --lake names, making it if it is not there."""
    return connect(settings.lake)


class LakeCommand(click.RichCommand):
    """A command with the shared options."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.params.extend(_shared_options())


class LakeGroup(click.RichGroup):
    """The group of all commands, with the shared options."""

    command_class = LakeCommand

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.params.extend(_shared_options())


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
        if value is not None:
            setattr(context.ensure_object(Settings), name, value)

    return keep


def _is_lake(target: str) -> bool:
    if "://" in target and not target.startswith("file://"):
        return True  # connect() says what it does not support
    return (Path(os.fspath(target).removeprefix("file://")) / CATALOG_FILE).is_file()
