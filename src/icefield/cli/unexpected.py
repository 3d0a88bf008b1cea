"""Errors that are not of this package, as one line without secrets: a full disk, an error of Spark, a bug."""

import os
import sys
import traceback

from icefield.cli.output import print_error, safe
from icefield.cli.settings import Settings
from icefield.secrets import redact, secrets_of, secrets_of_environment, secrets_of_text
from icefield.storage.disk import DISK_IS_FULL, FREE_SPACE


def print_unexpected(error: Exception, settings: Settings) -> bool:
    """Print an error; return whether it is one of the machine, which the user can remove, and not a bug."""
    show_traceback(settings)
    if isinstance(error, OSError) and error.errno in DISK_IS_FULL:
        print_error(f"a disk is full: {error}", FREE_SPACE)
        return True
    what = redact(str(error), _secrets(settings)).strip().splitlines()
    summary = f"{type(error).__name__}: {what[0]}" if what else type(error).__name__
    print_error(f"{summary} (this is a bug in icefield)", None if settings.debug else "Run it again with --debug")
    return False


def show_traceback(settings: Settings) -> None:
    """Print the traceback of the error that is being handled, if the user asked for it."""
    if settings.debug:
        sys.stderr.write(safe(redact(traceback.format_exc(), _secrets(settings)), keep_lines=True))


def _secrets(settings: Settings) -> list[str]:
    own = [*secrets_of(settings.properties), *secrets_of_text(settings.lake or "")]
    return [*own, *secrets_of_environment(os.environ)]
