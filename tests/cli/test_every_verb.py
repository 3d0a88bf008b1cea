"""The command line can do what the library can: every public verb of a handle has a command, or a reason for none."""

import inspect
from typing import Any

import pytest

import icefield
from icefield.cli.main import COMMANDS

# The command of each verb; options of it are named for readers.
COMMAND_OF = {
    "Lake.at": "lake-branch",  # --list, --publish, --drop
    "Lake.branch": "lake-branch",
    "Lake.create_namespace": "create-namespace",
    "Lake.create_table": "create",
    "Lake.create_table_as": "ingest",  # --create
    "Lake.create_table_like": "create",  # --like
    "Lake.create_view": "create-view",
    "Lake.drop_namespace": "drop-namespace",
    "Lake.drop_table": "drop",
    "Lake.drop_view": "drop-view",
    "Lake.dropped": "dropped",
    "Lake.fsck": "fsck",
    "Lake.leases": "leases",
    "Lake.namespace_properties": "namespace",
    "Lake.namespaces": "namespaces",
    "Lake.purge_dropped": "purge",
    "Lake.preview_refs": "lake-branch",  # --dry-run
    "Lake.read": "query",
    "Lake.register_table": "register",
    "Lake.relocate": "relocate",
    "Lake.rename_table": "rename",
    "Lake.rename_view": "rename",
    "Lake.report": "report",
    "Lake.sql": "sql",
    "Lake.sql_script": "sql",  # --file
    "Lake.table": "describe",
    "Lake.tables": "tables",
    "Lake.tag": "lake-tag",
    "Lake.undrop": "undrop",
    "Lake.update_namespace_properties": "namespace",  # --set, --unset
    "Lake.upkeep": "upkeep",
    "Lake.view": "view",
    "Lake.views": "views",
    "Table.add_files": "add-files",
    "Table.append": "append",
    "Table.at": "append",  # --branch, as other commands that write
    "Table.changed_files": "changed-files",
    "Table.cherry_pick": "cherry-pick",
    "Table.compact": "compact",
    "Table.compute_partition_statistics": "statistics",  # --partitions
    "Table.compute_statistics": "statistics",  # --compute
    "Table.convert_equality_deletes": "convert-deletes",
    "Table.count": "count",
    "Table.create_branch": "branch",
    "Table.create_tag": "tag",
    "Table.delete": "delete",
    "Table.delete_files": "delete-files",
    "Table.diff": "diff",
    "Table.drop_branch": "branch",  # --drop
    "Table.drop_tag": "tag",  # --drop
    "Table.evolve": "evolve",
    "Table.expire_snapshots": "expire",
    "Table.forget": "forget",
    "Table.fsck": "fsck",
    "Table.history": "history",
    "Table.inspect": "inspect",
    "Table.leases": "leases",
    "Table.merge": "merge",
    "Table.overwrite": "overwrite",
    "Table.overwrite_partitions": "overwrite",  # --partitions
    "Table.publish": "publish",
    "Table.rebase": "rebase",
    "Table.ref_status": "refs",
    "Table.refs": "refs",
    "Table.remove_orphans": "orphans",
    "Table.remove_snapshots": "expire",  # --snapshot
    "Table.remove_statistics": "statistics",  # --remove
    "Table.rename_branch": "branch",  # --rename
    "Table.rename_tag": "tag",  # --rename
    "Table.replace": "create",  # --replace
    "Table.report": "report",
    "Table.revert": "revert",
    "Table.rewrite_deletes": "rewrite-deletes",
    "Table.rewrite_manifests": "rewrite-manifests",
    "Table.rollback": "rollback",
    "Table.scan": "query",
    "Table.scan_appends": "appends",
    "Table.scan_changes": "diff",
    "Table.set_current_snapshot": "rollback",
    "Table.set_location": "set-location",
    "Table.set_properties": "properties",
    "Table.set_retention": "branch",  # --keep-last, --max-age
    "Table.snapshots": "snapshots",
    "Table.statistics": "statistics",
    "Table.sweep": "sweep",
    "Table.head": "query",  # --limit
    "Table.limit": "query",  # --limit
    "Table.to_arrow": "query",
    "Table.undo": "undo",
    "Table.update": "update",
    "Table.upgrade_format_version": "upgrade",
    "Table.upsert": "upsert",
    "Table.check_branch": "publish",  # --dry-run
    "Table.log": "log",
    "Table.noting": "publish",  # --author, --message
    "Lake.noting": "append",
    "TableScan.count": "count",
    "TableScan.count_by_partition": "count",  # --by-partition
    "TableScan.explain": "explain",
    "TableScan.explain_file": "explain",  # --why
    "TableScan.files": "files",
    "TableScan.max": "min-max",
    "TableScan.min": "min-max",
    "TableScan.pin": "tag",  # --at
    "TableScan.splits": "files",  # --splits
    "TableScan.head": "query",  # --limit
    "TableScan.limit": "query",  # --limit
    "TableScan.to_arrow": "query",
    "View.history": "view",
    "View.set_properties": "properties",
    "View.versions": "view",
}
NO_COMMAND = {
    "Lake.attach": "puts tables into the catalog of a Spark session, which ends with the command",
    "Lake.close": "a command closes the lake that it opened",
    "Lake.detach": "undoes attach",
    "Lake.has_table": "`describe` fails if there is none",
    "Lake.has_view": "`view` fails if there is none",
    "Lake.head": "for engines",
    "Lake.on_report": "calls a function of the process",
    "Lake.transaction": "a block of code; in SQL, BEGIN and COMMIT of `sql`",
    "Lake.use": "chooses the Spark session of a process",
    "Table.explain_change": "merge and others show it with --dry-run",
    "Table.to_duckdb": "gives a relation to a program; `sql --engine local` runs DuckDB",
    "Table.to_pandas": "gives a frame to a program",
    "Table.to_polars": "gives a frame to a program",
    "TableScan.to_daft": "gives a frame to a program",
    "TableScan.to_ray": "gives a Dataset to a program",
    "TableScan.to_duckdb": "gives a relation to a program; `sql --engine local` runs DuckDB",
    "TableScan.to_pandas": "gives a frame to a program",
    "TableScan.to_polars": "gives a frame to a program",
    "Table.refresh": "a command reads the newest version",
    "Table.set_statistics": "enters a file that a program wrote",
    "TableScan.leasing": "for handles",
    "TableScan.noting": "for handles",
    "TableScan.pinning": "for handles",
    "TableScan.to_spark": "gives a DataFrame to a program; `sql` prints rows of Spark",
    "TableScan.using": "for handles",
    "Transaction.commit": "a block of code; in SQL, BEGIN and COMMIT of `sql`",
    "Transaction.pin": "as commit",
    "Transaction.read": "as commit",
    "Transaction.rollback": "as commit",
    "Transaction.table": "as commit",
    "View.refresh": "a command reads the newest version",
    "View.to_spark": "`sql` reads views",
}
# The option for a parameter, where it has another name.
OPTION_OF = {
    "Lake.create_table_like.source": "like",
    "Table.delete_files.files": "locations",
    "Table.scan_changes.until": "after",
    "Table.set_current_snapshot.snapshot_id": "version",
    "Table.upgrade_format_version.format_version": "version",
    "columns": "column",
    "idempotency_key": "key",
    "location": "why",
    "metadata_location": "metadata_file",
    "new_name": "rename",
    "rows": "files",
    "rules": "max_age",
    "retention": "max_age",
    "snapshot_id": "snapshot",
    "snapshot_ids": "snapshot",
    "source": "files",
    "text": "statement",
    "args": "param",
    "count": "limit",
    "column": "columns",
    "name": "table",
    "to": "version",
}
# Parameters that no option sets, and why.
NO_OPTION = {
    "engine": "--lake-property engine=…",
    "progress": "a function of a program; a command shows it",
    "on_progress": "as progress",
    "frames": "DataFrames of a program",
    "target_name": "what the table is called in conditions: target",
    "source_name": "what the rows are called in conditions: source",
    "Lake.create_table_as.replace": "`create --replace` asks, `overwrite` replaces rows",
    "Lake.create_view.columns": "names in the query: SELECT … AS name",
    "Lake.branch.retention": "for each table, with `branch`",
    "Lake.tag.retention": "for each table, with `tag`",
    "Lake.preview_refs.kind": "`lake-branch` or `lake-tag`",
    "Lake.preview_refs.retention": "for each table, with `branch` and `tag`",
    "Table.check_branch.beside": "`publish` opens them",
    "Table.remove_orphans.most_locations": "how many locations the result has",
}
STEPS = {
    "add_column": "add",
    "add_partition_field": "partition",
    "drop_column": "drop",
    "drop_identifier_fields": "key",
    "drop_partition_field": "partition",
    "make_optional": "alter",
    "move_column": "move",
    "rename_column": "rename",
    "rename_partition_field": "partition",
    "set_default": "alter",
    "set_doc": "alter",
    "set_identifier_fields": "key",
    "set_sort_order": "order",
    "union_by_name": "union",
    "update_column_type": "widen",
}


def verbs_of(handle: Any) -> set[str]:
    return {n for n in dir(handle) if not n.startswith("_") and inspect.isfunction(getattr(handle, n))}


@pytest.mark.parametrize("handle", ["Lake", "Table", "TableScan", "View", "Transaction"])
def test_every_verb_has_a_command_or_a_reason_for_none(handle: str) -> None:
    verbs = {f"{handle}.{verb}" for verb in verbs_of(getattr(icefield, handle))}
    listed = {each for each in COMMAND_OF.keys() | NO_COMMAND.keys() if each.startswith(f"{handle}.")}
    assert verbs - listed == set(), "add a command, or a reason for none"
    assert listed - verbs == set(), "no such verb"


def test_a_verb_is_listed_once_and_its_command_is_there() -> None:
    assert COMMAND_OF.keys() & NO_COMMAND.keys() == set()
    assert set(COMMAND_OF.values()) - {command.name for command in COMMANDS} == set()


def options_of(command: Any) -> set[str]:
    """Return the names of all options and arguments of a command, and of those in its group."""
    loaded = command.load() if hasattr(command, "load") else command
    own = {name.lstrip("-").replace("-", "_") for each in loaded.params for name in (each.name, *each.opts)}
    return own.union(*(options_of(each) for each in getattr(loaded, "commands", {}).values()))


def test_every_parameter_of_a_verb_has_an_option_or_a_reason_for_none() -> None:
    options = {command.name: options_of(command) for command in COMMANDS if command.name in COMMAND_OF.values()}
    missing, used = set(), set()
    for verb, command in COMMAND_OF.items():
        handle, name = verb.split(".")
        for parameter in list(inspect.signature(getattr(getattr(icefield, handle), name)).parameters)[1:]:
            other = OPTION_OF.get(f"{verb}.{parameter}", OPTION_OF.get(parameter, parameter))
            if reasons := {parameter, f"{verb}.{parameter}"} & NO_OPTION.keys():
                used |= reasons
            elif not {parameter, f"no_{parameter}", other} & options[command]:
                missing.add(f"{verb}({parameter}) in `{command}`")
    assert missing == set(), "add an option, or a reason for none"
    assert NO_OPTION.keys() - used == set(), "no such parameter"


def test_every_step_of_an_evolution_has_a_command() -> None:
    (evolve,) = [command.load() for command in COMMANDS if command.name == "evolve"]
    assert verbs_of(icefield.TableEvolution) - {"preview"} == STEPS.keys()
    assert set(getattr(evolve, "commands", {})) == set(STEPS.values())
