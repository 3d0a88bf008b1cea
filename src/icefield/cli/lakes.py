"""The lake that the command line names: opened by most commands, created by commands that may start one.

Raises InvalidInput if there is no lake.
"""

import os
from pathlib import Path

from icefield.cli.settings import DEFAULT_LAKE, Settings
from icefield.config.configuration import LakeSettings
from icefield.config.connect import check_catalog_is_there, is_there
from icefield.config.connect import open_lake as open_described_lake
from icefield.config.file import ProcessEnvironment
from icefield.config.sources import LAKE_VARIABLE, find_settings
from icefield.errors import InvalidInput
from icefield.lake import Lake


def open_lake(settings: Settings) -> Lake:
    """Open the lake; do not create one."""
    described = _describe(settings)
    check_catalog_is_there(described)
    if not is_there(described) and not described.create:
        raise InvalidInput(
            f"no lake at {described.target}",
            hint=f"Name one with --lake or {LAKE_VARIABLE}, or create one with `icefield create` or `icefield demo`",
        )
    return open_described_lake(described)


def make_lake(settings: Settings) -> Lake:
    """Open the lake; create it if there is none."""
    return open_described_lake(_describe(settings))


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
