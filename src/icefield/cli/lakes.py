"""The lake that --lake names: opened by commands on what is there, made by commands that may begin one.

Raises InvalidInput where there is no lake.
"""

from pathlib import Path

from icefield.cli.settings import LAKE_VARIABLE, Settings
from icefield.errors import InvalidInput
from icefield.lake import CATALOG_FILE, Lake, connect


def open_lake(settings: Settings) -> Lake:
    """Open the lake; a directory without one is not made into one."""
    if not _is_lake(settings.lake):
        raise InvalidInput(
            f"no lake at {settings.lake}",
            hint=f"Name one with --lake DIR or {LAKE_VARIABLE}, or make one with `icefield create` or `icefield demo`",
        )
    return connect(settings.lake, roots=settings.roots)


def make_lake(settings: Settings) -> Lake:
    """Open the lake, making it if it is not there."""
    return connect(settings.lake, roots=settings.roots)


def _is_lake(target: str) -> bool:
    if "://" in target and not target.startswith("file://"):
        return True  # connect() says what it does not support
    return (Path(target.removeprefix("file://")) / CATALOG_FILE).is_file()
