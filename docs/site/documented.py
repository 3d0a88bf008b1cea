"""What the code says of its own settings, for the tables of the site.

Arguments of `connect` are described in its docstring, properties of clients in the docstrings of the modules that read
them: a line each, with two spaces or more between the name and its meaning.
"""

import inspect
import re
from importlib import import_module

from icefield.config.connect import connect
from icefield.config.sources import _VARIABLES as VARIABLES

LISTED = re.compile(r"^ {0,4}([a-z][\w.<>-]*) {2,}(\S.*(?:\n {6,}\S.*)*)", re.MULTILINE)
ARGUMENT = re.compile(r"^    (\w+): (.*(?:\n {8,}\S.*)*)", re.MULTILINE)
NOT_SETTINGS = {"ambient"}


def listed_properties(module: str) -> list[tuple[str, str]]:
    """Return the properties that a module lists in its docstring, with their meanings."""
    return [(name, _line(text)) for name, text in LISTED.findall(import_module(module).__doc__ or "")]


def lake_settings() -> list[tuple[str, str, str]]:
    """Return the settings of a lake: the key, its variable of the environment, and its meaning."""
    _, _, described = (inspect.getdoc(connect) or "").partition("Args:\n")
    names = {key: variable for variable, key in VARIABLES.items()}
    return [
        (key, names.get(key, ""), _line(text)) for key, text in ARGUMENT.findall(described) if key not in NOT_SETTINGS
    ]


def _line(text: str) -> str:
    return " ".join(text.replace("`", "``").split())
