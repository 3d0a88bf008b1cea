"""The command line as one group with its commands loaded, for the API reference pages.

Options that every command shares are shown once, with the group.
"""

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
    return loaded


group = click.Group("icefield", _load_commands(), params=entry.params, help=entry.help)
