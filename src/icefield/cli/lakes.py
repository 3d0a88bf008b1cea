"""The lake that the command line names: opened by most commands, created by commands that may start one.

Raises InvalidInput if there is no lake.
"""

from __future__ import annotations

import os
from pathlib import Path

from icefield.cli.settings import DEFAULT_LAKE, Settings
from icefield.config.sources import LAKE_VARIABLE, find_settings
from icefield.deferred import deferred_imports
from icefield.errors import InvalidInput
from icefield.model.snapshot import MAIN

with deferred_imports(__name__):
    from icefield.config.configuration import LakeSettings
    from icefield.config.connect import check_catalog_is_there, is_there
    from icefield.config.connect import open_lake as open_described_lake
    from icefield.config.file import ProcessEnvironment
    from icefield.lake import Lake
    from icefield.table.table import Table


def open_lake(settings: Settings) -> Lake:
    """Open the lake; do not create one."""
    described = _describe(settings)
    check_catalog_is_there(described)
    if not is_there(described) and not described.create:
        raise InvalidInput(
            f"no lake at {described.target}",
            hint=f"Name one with --lake or {LAKE_VARIABLE}, or create one with `icefield create` or `icefield demo`",
        )
    return _noted(open_described_lake(described), settings)


def open_branch(lake: Lake, table: str, branch: str) -> Table:
    """Open a table to read and change a branch of it."""
    handle = lake.table(table)
    return handle if branch == MAIN else handle.at(branch)


def lake_is_there(settings: Settings) -> bool:
    """Return whether the lake exists."""
    return is_there(_describe(settings))


def make_lake(settings: Settings) -> Lake:
    """Open the lake; create it if there is none."""
    return _noted(open_described_lake(_describe(settings)), settings)


def _noted(lake: Lake, settings: Settings) -> Lake:
    """Have new snapshots say why and by whom."""
    return lake.noting(message=settings.message, author=settings.author)


def _describe(settings: Settings) -> LakeSettings:
    said = {
        "target": settings.lake,
        "warehouse": settings.warehouse,
        "roots": settings.roots,
        "properties": settings.properties,
        "create": settings.create,
    }
    given = {key: value for key, value in said.items() if value}
    return find_settings(given, ProcessEnvironment(os.environ, Path.cwd()), DEFAULT_LAKE)
