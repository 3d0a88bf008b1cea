"""Questions before a change that destroys something, and the options --dry-run and --yes."""

import sys
from collections.abc import Callable
from typing import Any, TypeVar

import rich_click as click

from icefield.cli.output import talk
from icefield.errors import InvalidInput

F = TypeVar("F", bound=Callable[..., Any])


def asking_options() -> Callable[[F], F]:
    """The options of a command that asks: --dry-run and --yes."""

    def decorate(command: F) -> F:
        command = click.option("--dry-run", is_flag=True, help="Show what would be done, and change nothing.")(command)
        return click.option("--yes", is_flag=True, help="Do not ask.")(command)

    return decorate


def confirm(question: str, otherwise: str) -> None:
    """Ask a question; raise InvalidInput unless the answer is yes, or if there is no terminal to ask on."""
    if not sys.stdin.isatty():
        # Input that is not a terminal may be a pipe that nobody writes to, or rows that are to be read.
        raise InvalidInput(f"{otherwise}: it was not confirmed, and there is no terminal to ask", hint="Give --yes")
    try:
        confirmed = click.confirm(question, err=True)
    except click.Abort:
        confirmed = False
    if not confirmed:
        raise InvalidInput(f"{otherwise}: it was not confirmed", hint="Answer y, or give --yes")


def ask_first(what: str, question: str, otherwise: str, *, dry_run: bool, yes: bool) -> bool:
    """Show what would be done and ask, unless it is a dry run. Return whether to do it."""
    if not dry_run and not yes:
        talk(what)
        confirm(question, otherwise)
    return not dry_run
