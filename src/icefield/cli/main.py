"""The entry point: the group of all commands, and what becomes of errors.

Exit codes: 0 done; 1 the user's fault, or the data's, with one clear sentence; 2 a fault of ours; 130 interrupted.
"""

import os
import sys
import traceback
from collections.abc import Sequence

import rich_click as click

from icefield.cli.demo import demo
from icefield.cli.describe import describe
from icefield.cli.ingest import ingest
from icefield.cli.output import print_error
from icefield.cli.plans import count, explain, files
from icefield.cli.query import query
from icefield.cli.settings import LakeGroup, Settings, settings_from
from icefield.cli.snapshots import history, snapshots
from icefield.cli.tables import create, drop, tables
from icefield.cli.tree import tree
from icefield.errors import IcefieldError

OK, USERS_FAULT, OUR_FAULT, INTERRUPTED = 0, 1, 2, 130
HELP = click.RichHelpConfiguration(max_width=100, show_arguments=True, text_markup=False)


@click.group(
    cls=LakeGroup,
    context_settings={"help_option_names": ["-h", "--help"], "rich_help_config": HELP},
    no_args_is_help=False,
    invoke_without_command=True,
)
@click.version_option(package_name="icefield", prog_name="icefield")
@click.pass_context
def icefield(context: click.Context) -> None:
    """Apache Iceberg tables in a directory."""
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


for _command in (demo, tables, create, describe, drop, ingest, query, count, explain, files, snapshots, history, tree):
    icefield.add_command(_command)


def main() -> None:
    """Run the command line of this process."""
    sys.exit(run(sys.argv[1:]))


def run(arguments: Sequence[str]) -> int:
    """Run a command line and return its exit code; errors are told on stderr."""
    settings = settings_from(os.environ)
    try:
        result = icefield.main(list(arguments), prog_name="icefield", obj=settings, standalone_mode=False)
    except click.exceptions.Abort:
        print_error("interrupted; nothing more was done")
        return INTERRUPTED
    except click.ClickException as error:
        print_error(error.format_message(), _usage_hint(error))
        return USERS_FAULT
    except IcefieldError as error:
        _show_traceback(settings)
        print_error(error.message, error.hint)
        return USERS_FAULT
    except Exception as error:
        _show_traceback(settings)
        what = str(error).strip().splitlines()
        summary = f"{type(error).__name__}: {what[0]}" if what else type(error).__name__
        print_error(f"{summary} (this is a bug in icefield)", None if settings.debug else "Run it again with --debug")
        return OUR_FAULT
    return result if isinstance(result, int) else OK


def _usage_hint(error: click.ClickException) -> str | None:
    if isinstance(error, click.UsageError) and error.ctx is not None:
        return f"See `{error.ctx.command_path} --help`"
    return None


def _show_traceback(settings: Settings) -> None:
    if settings.debug:
        traceback.print_exc()
