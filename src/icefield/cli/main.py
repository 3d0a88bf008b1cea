"""The entry point: the group of all commands, and error handling.

Commands are imported when they are called, so that `--help` is fast.

Exit codes: 0 success; 1 an error of the user or in the data, as a one-line message; 2 an internal error;
130 interrupted.
"""

import os
import sys
import warnings
from collections.abc import Sequence
from importlib import import_module
from typing import Any, TextIO

import rich_click as click

from icefield.arguments import is_utf8
from icefield.cli.output import colour_system, print_error, print_warning
from icefield.cli.settings import LakeGroup, settings_from
from icefield.cli.streams import OutputFailed, open_streams, run_to_the_end
from icefield.cli.unexpected import print_unexpected, show_traceback
from icefield.errors import IcefieldError, IcefieldWarning

OK, USERS_FAULT, OUR_FAULT, INTERRUPTED = 0, 1, 2, 130


class CommandOnDemand(click.RichCommand):
    """A command in a module, under the command's name with `_` for `-`; imported when it is called."""

    def __init__(self, name: str, module: str, short_help: str) -> None:
        super().__init__(name=name, short_help=short_help)
        self._module = module

    def load(self) -> click.Command:
        """Import the command."""
        command: click.Command = getattr(import_module(self._module), str(self.name).replace("-", "_"))
        return command

    def make_context(self, *args: Any, **kwargs: Any) -> Any:
        return self.load().make_context(*args, **kwargs)


COMMANDS = (
    CommandOnDemand("demo", "icefield.cli.demo.command", "Show what a lake can do, with a short story that runs."),
    CommandOnDemand("tables", "icefield.cli.commands.tables", "List the tables of the lake, or of one namespace."),
    CommandOnDemand("create", "icefield.cli.commands.tables", "Create an empty table."),
    CommandOnDemand(
        "register", "icefield.cli.commands.tables", "Add an existing table to the catalog, by its metadata file."
    ),
    CommandOnDemand("rename", "icefield.cli.definition.properties", "Rename a table or a view."),
    CommandOnDemand("relocate", "icefield.cli.commands.relocate", "Repair a lake that was moved or copied."),
    CommandOnDemand("describe", "icefield.cli.commands.describe", "Show the definition and state of a table."),
    CommandOnDemand(
        "evolve", "icefield.cli.definition.evolve", "Change columns, partition fields and sort order of a table."
    ),
    CommandOnDemand(
        "properties", "icefield.cli.definition.properties", "Show or change the properties of a table or view."
    ),
    CommandOnDemand("set-location", "icefield.cli.definition.properties", "Set where new files of a table go."),
    CommandOnDemand("statistics", "icefield.cli.definition.statistics", "List, compute or remove statistics files."),
    CommandOnDemand("upgrade", "icefield.cli.commands.tables", "Upgrade a table to a later format version."),
    CommandOnDemand("drop", "icefield.cli.commands.tables", "Remove a table from the catalog."),
    CommandOnDemand("dropped", "icefield.cli.commands.upkeep", "List dropped tables that can be restored."),
    CommandOnDemand("undrop", "icefield.cli.commands.upkeep", "Restore a dropped table."),
    CommandOnDemand("purge", "icefield.cli.commands.upkeep", "Delete the files of tables dropped with --purge."),
    CommandOnDemand("namespaces", "icefield.cli.definition.namespaces", "List namespaces."),
    CommandOnDemand("namespace", "icefield.cli.definition.namespaces", "Show or change the properties of a namespace."),
    CommandOnDemand("create-namespace", "icefield.cli.definition.namespaces", "Create a namespace."),
    CommandOnDemand("drop-namespace", "icefield.cli.definition.namespaces", "Drop an empty namespace."),
    CommandOnDemand("views", "icefield.cli.commands.views", "List the views of the lake, or of one namespace."),
    CommandOnDemand("view", "icefield.cli.commands.views", "Show a view's query, columns and history."),
    CommandOnDemand("create-view", "icefield.cli.commands.views", "Create a view: a named query."),
    CommandOnDemand("drop-view", "icefield.cli.commands.views", "Remove a view from the catalog; its files are kept."),
    CommandOnDemand(
        "ingest", "icefield.cli.writing.ingest", "Append Parquet, CSV or JSON files to a table, or create it."
    ),
    CommandOnDemand("append", "icefield.cli.writing.write", "Append files to a table or a branch."),
    CommandOnDemand("overwrite", "icefield.cli.writing.write", "Replace rows by those of files."),
    CommandOnDemand("add-files", "icefield.cli.commands.add_files", "Add existing Parquet files to a table."),
    CommandOnDemand("delete", "icefield.cli.commands.changes", "Delete the rows that match a filter."),
    CommandOnDemand("delete-files", "icefield.cli.writing.write", "Remove data files from a table."),
    CommandOnDemand("update", "icefield.cli.commands.changes", "Change columns of the rows that match a filter."),
    CommandOnDemand("upsert", "icefield.cli.commands.changes", "Update rows by key from files, and insert new ones."),
    CommandOnDemand(
        "merge", "icefield.cli.commands.changes", "Match rows of files with rows of a table, and change them."
    ),
    CommandOnDemand(
        "compact", "icefield.cli.commands.compact", "Rewrite small files, and files with deletes, as larger ones."
    ),
    CommandOnDemand("rewrite-manifests", "icefield.cli.commands.compact", "Cluster manifests by partition."),
    CommandOnDemand("rewrite-deletes", "icefield.cli.commands.compact", "Rewrite position deletes as fewer files."),
    CommandOnDemand("convert-deletes", "icefield.cli.commands.compact", "Convert equality to position deletes."),
    CommandOnDemand("expire", "icefield.cli.commands.upkeep", "Remove old snapshots, and mark their files."),
    CommandOnDemand("forget", "icefield.cli.commands.upkeep", "Delete rows for good, and prove that they are gone."),
    CommandOnDemand("orphans", "icefield.cli.commands.upkeep", "Mark files that nothing refers to."),
    CommandOnDemand("sweep", "icefield.cli.commands.upkeep", "Delete marked files whose grace period is over."),
    CommandOnDemand("leases", "icefield.cli.commands.upkeep", "List long reads and writes, and what they hold."),
    CommandOnDemand("upkeep", "icefield.cli.commands.upkeep", "Do the upkeep that tables need, worst debt first."),
    CommandOnDemand("fsck", "icefield.cli.commands.fsck", "Check that files exist and that metadata is true."),
    CommandOnDemand("report", "icefield.cli.commands.fsck", "Report what tables store, and what upkeep would gain."),
    CommandOnDemand("sql", "icefield.cli.sql.command", "Run SQL statements, or a shell for them."),
    CommandOnDemand("query", "icefield.cli.commands.query", "Read rows."),
    CommandOnDemand("count", "icefield.cli.commands.plans", "Count rows."),
    CommandOnDemand("min-max", "icefield.cli.commands.plans", "Show the least and greatest value of columns."),
    CommandOnDemand("explain", "icefield.cli.commands.plans", "Explain what a query reads, and what prunes the rest."),
    CommandOnDemand("files", "icefield.cli.commands.plans", "List the data files that a query reads."),
    CommandOnDemand(
        "inspect", "icefield.cli.commands.inspect", "Read a metadata table: files, manifests, partitions, …"
    ),
    CommandOnDemand("appends", "icefield.cli.history.appends", "Read the rows that were appended after a version."),
    CommandOnDemand(
        "changed-files", "icefield.cli.history.appends", "List the files added and removed between two versions."
    ),
    CommandOnDemand("snapshots", "icefield.cli.commands.snapshots", "List the snapshots of a table."),
    CommandOnDemand("history", "icefield.cli.commands.snapshots", "List the snapshots that were current, and when."),
    CommandOnDemand("log", "icefield.cli.history.diff", "List the snapshots of all branches; draw them as a graph."),
    CommandOnDemand("diff", "icefield.cli.history.diff", "Compare two versions: rows, files, columns, properties."),
    CommandOnDemand("refs", "icefield.cli.history.branches", "List branches and tags."),
    CommandOnDemand("branch", "icefield.cli.history.refs", "Create, rename or drop a branch."),
    CommandOnDemand("tag", "icefield.cli.history.refs", "Create, rename or drop a tag."),
    CommandOnDemand("lake-branch", "icefield.cli.history.lake_refs", "Create, publish or drop a branch of all tables."),
    CommandOnDemand("lake-tag", "icefield.cli.history.lake_refs", "Tag one consistent state of all tables."),
    CommandOnDemand("publish", "icefield.cli.history.branches", "Make the changes of a branch visible in another."),
    CommandOnDemand("rebase", "icefield.cli.history.branches", "Move a branch and its changes to another head."),
    CommandOnDemand("cherry-pick", "icefield.cli.history.branches", "Apply what one snapshot changed to a branch."),
    CommandOnDemand("revert", "icefield.cli.history.branches", "Take back what one snapshot changed."),
    CommandOnDemand("rollback", "icefield.cli.history.branches", "Move a branch back to an earlier version."),
    CommandOnDemand("undo", "icefield.cli.history.branches", "Move a branch to where it was before."),
    CommandOnDemand("tree", "icefield.cli.commands.tree", "Draw the metadata tree of a table."),
    CommandOnDemand("doctor", "icefield.cli.doctor.command", "Check this machine and the lake; say how to mend them."),
    CommandOnDemand("completion", "icefield.cli.completion", "Print a script for the completion of commands."),
)


def show_version(context: click.Context, parameter: click.Parameter, value: Any) -> None:
    """Print the version and leave; plain Python where C is expected is why planning is slow."""
    if value and not context.resilient_parsing:
        kernel = import_module("icefield.codec.avro.engine").chosen().description
        click.echo(
            f"icefield, version {import_module('importlib.metadata').version('icefield')}, Avro kernel: {kernel}"
        )
        context.exit()


@click.group(
    cls=LakeGroup,
    commands=COMMANDS,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=show_version,
    help="Show the version, and in which form the Avro kernels run.",
)
def icefield() -> None:
    """Apache Iceberg tables in a directory."""


def main() -> None:
    """Run the command line of this process."""
    open_streams()
    sys.exit(run_to_the_end(lambda: run(sys.argv[1:]), print_error))


def run(arguments: Sequence[str]) -> int:
    """Run a command line and return its exit code. Errors are printed to stderr."""
    with warnings.catch_warnings():
        warnings.simplefilter("always", IcefieldWarning)
        warnings.showwarning = _show_warning
        return _run(arguments)


def _run(arguments: Sequence[str]) -> int:
    settings = settings_from(os.environ)
    for argument in arguments:
        if not is_utf8(argument):
            print_error(f"the argument {argument[:80]!r} is not UTF-8", "Rename the file, or set the terminal to UTF-8")
            return USERS_FAULT
    try:
        result = icefield.main(
            list(arguments), prog_name="icefield", obj=settings, rich_help_config=_help(), standalone_mode=False
        )
    except click.Abort:
        print_error("interrupted")
        return INTERRUPTED
    except click.ClickException as error:
        print_error(error.format_message(), _usage_hint(error))
        return USERS_FAULT
    except IcefieldError as error:
        show_traceback(settings)
        print_error(error.message, error.hint, error.excerpt)
        return USERS_FAULT
    except OutputFailed:
        raise
    except Exception as error:
        return USERS_FAULT if print_unexpected(error, settings) else OUR_FAULT
    return result if isinstance(result, int) else OK


def _help() -> click.RichHelpConfiguration:
    return click.RichHelpConfiguration(max_width=100, show_arguments=True, color_system=colour_system())


def _usage_hint(error: click.ClickException) -> str | None:
    if isinstance(error, click.UsageError) and error.ctx is not None:
        return f"See `{error.ctx.command_path} --help`"
    return None


def _show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """Print an Icefield warning as one sentence; leave other warnings to Python."""
    if issubclass(category, IcefieldWarning):
        print_warning(str(message))
    else:
        sys.stderr.write(warnings.formatwarning(message, category, filename, lineno, line))
