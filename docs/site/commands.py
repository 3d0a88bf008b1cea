"""The command line as one group with its commands loaded, for the API reference pages.

Options that every command shares are shown once, with the group.
"""

import re

import click

from icefield.cli.main import COMMANDS
from icefield.cli.main import icefield as entry

SHARED = {option.name for option in entry.params}


def _load_commands() -> dict[str, click.Command]:
    loaded = {}
    for each in COMMANDS:
        command = loaded[str(each.name)] = each.load()
        for inner in (command, *getattr(command, "commands", {}).values()):
            inner.params = [option for option in inner.params if option.name not in SHARED]
            inner.help = _plain(inner.help)
            for option in inner.params:
                if isinstance(option, click.Option):
                    option.help = _plain(option.help)
    return loaded


def _plain(text: str | None) -> str | None:
    """Escape what begins markup in reStructuredText: help is plain text, and has patterns such as in/*.csv."""
    return None if text is None else re.sub(r"[*|]", r"\\\g<0>", text)


group = click.Group("icefield", _load_commands(), params=entry.params, help=entry.help)
