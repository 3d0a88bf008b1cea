"""icefield completion: a script that completes commands, options and names of tables in a shell."""

import rich_click as click
from click.shell_completion import get_completion_class

from icefield.cli.output import print_json, print_text
from icefield.cli.settings import LakeCommand, Settings
from icefield.errors import InvalidInput

PROGRAM, VARIABLE = "icefield", "_ICEFIELD_COMPLETE"
SHELLS = {"bash": "~/.bashrc", "zsh": "~/.zshrc", "fish": "~/.config/fish/completions/icefield.fish"}


@click.command(cls=LakeCommand)
@click.argument("shell", type=click.Choice(list(SHELLS)))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print a script for the completion of commands and options.

    For bash and zsh put `eval "$(icefield completion bash)"` into ~/.bashrc or ~/.zshrc; for fish write the script to
    ~/.config/fish/completions/icefield.fish.
    """
    settings: Settings = context.obj
    found = get_completion_class(shell)
    if found is None:
        raise InvalidInput(f"there is no completion for {shell}")
    # The source of a script is a template; bash, which click would start to ask for its version, is not needed.
    script = found(context.find_root().command, {}, PROGRAM, VARIABLE)
    text = script.source_template % script.source_vars()
    if settings.as_json:
        print_json({"shell": shell, "file": SHELLS[shell], "script": text})
    else:
        print_text(text.strip())
