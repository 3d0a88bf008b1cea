"""icefield compact, rewrite-manifests, rewrite-deletes, convert-deletes: fewer, larger files, and faster planning."""

from dataclasses import replace
from typing import Any

import rich_click as click

from icefield.cli.lakes import open_branch, open_lake
from icefield.cli.options import branch_option, table_argument, where_option
from icefield.cli.output import counted, print_json, print_text
from icefield.cli.pairs import parse_pairs
from icefield.cli.progress import show_progress
from icefield.cli.settings import Settings, SnapshotCommand
from icefield.cli.snapshot_facts import summary_number
from icefield.compaction.compact import CompactionProgress
from icefield.compaction.options import STRATEGIES

# The keys of the snapshot summary that are reported.
COUNTS = ("manifests-replaced", "manifests-created", "manifests-kept")
CONVERTED = (
    "removed-equality-delete-files",
    "removed-delete-files",
    "added-delete-files",
    "added-position-deletes",
)


@click.command(cls=SnapshotCommand)
@table_argument()
@where_option()
@click.option("--strategy", type=click.Choice(STRATEGIES), help="How rows are put together. By default bin-pack.")
@click.option("--cluster-by", metavar="COLUMNS", help="Cluster rows by these columns, separated by commas.")
@click.option(
    "--order-by", metavar="TERM", multiple=True,
    help="Sort by this, such as 'ts desc', instead of the table's order. May be repeated.",
)  # fmt: skip
@click.option(
    "--option", "options", metavar="NAME=VALUE", multiple=True, callback=parse_pairs,
    help="A threshold such as min-input-files=4, instead of the table's property. May be repeated.",
)  # fmt: skip
@branch_option()
@click.option("--dry-run", is_flag=True, help="Change nothing; show what would be done.")
@click.pass_obj
def compact(  # noqa: PLR0913 - one parameter per option
    settings: Settings,
    table: str,
    where: str | None,
    *,
    strategy: str | None,
    cluster_by: str | None,
    order_by: tuple[str, ...],
    options: dict[str, str],
    branch: str,
    dry_run: bool,
) -> None:
    """Rewrite files that are too small, too large, or have many deleted rows. No row changes.

    Readers and writers go on concurrently. Files are rewritten in groups that are committed as they are finished; after
    an interruption, run it again. With --where, only files that may hold matching rows are looked at.
    """
    how: dict[str, Any] = {
        "strategy": strategy,
        "cluster_by": [name.strip() for name in cluster_by.split(",")] if cluster_by else [],
        "order_by": order_by,
        "options": options,
    }
    with open_lake(settings) as lake:
        opened = open_branch(lake, table, branch)
        plan = opened.compact(where, **how, dry_run=True)
        if dry_run or not plan.plan.groups:
            result = replace(plan, is_dry_run=dry_run)
        else:
            with show_progress(f"compacting {opened.name}", len(plan.plan.groups), "groups") as steps:
                done = 0

                def advance(progress: CompactionProgress) -> None:
                    nonlocal done
                    steps.advance(progress.groups - done, f"{progress.bytes:,} of {progress.of_bytes:,} bytes")
                    done = progress.groups

                result = opened.compact(where, **how, on_progress=advance)
    if settings.as_json:
        print_json({"table": table, **result.as_dict()})
    elif not result.plan.groups:
        print_text(f"{table} has nothing to compact: {counted(result.plan.files, 'file')}, all good")
    else:
        print_text(str(result))


@click.command(cls=SnapshotCommand)
@table_argument()
@branch_option()
@click.option("--dry-run", is_flag=True, help="Change nothing; show what would be done.")
@click.pass_obj
def rewrite_manifests(settings: Settings, table: str, *, branch: str, dry_run: bool) -> None:
    """Rewrite manifests, clustered by partition, so that planning reads less. No data file changes."""
    with open_lake(settings) as lake:
        snapshot = open_branch(lake, table, branch).rewrite_manifests(dry_run=dry_run)
    found = {key: (summary_number(snapshot, key) or 0) if snapshot else 0 for key in COUNTS}
    if settings.as_json:
        named = None if snapshot is None or dry_run else str(snapshot.snapshot_id)
        print_json({"table": table, "snapshot-id": named, "is-dry-run": dry_run, **found})
    elif snapshot is None:
        print_text(f"the manifests of {table} are good")
    else:
        replaced = counted(found["manifests-replaced"], "manifest")
        verb = "would replace" if dry_run else "replaced"
        print_text(f"{verb} {replaced} of {table} by {found['manifests-created']:,}; {found['manifests-kept']:,} kept")


@click.command(cls=SnapshotCommand)
@table_argument()
@where_option()
@click.option("--convert-equality", is_flag=True, help="Also convert equality deletes, as convert-deletes does.")
@branch_option()
@click.option("--dry-run", is_flag=True, help="Change nothing; show what would be done.")
@click.pass_obj
def rewrite_deletes(
    settings: Settings, table: str, where: str | None, *, convert_equality: bool, branch: str, dry_run: bool
) -> None:
    """Rewrite position deletes, so that scans open fewer delete files. No row changes.

    Small delete files become few, position deletes of version 3 become deletion vectors, and deletes that apply to no
    data file are dropped. Readers and writers go on concurrently. With --where, only the deletes of data files that may
    hold matching rows are rewritten.
    """
    with open_lake(settings) as lake:
        opened = open_branch(lake, table, branch)
        with show_progress(f"reading deletes of {opened.name}"):
            result = opened.rewrite_deletes(where, convert_equality=convert_equality, dry_run=dry_run)
    if settings.as_json:
        print_json({"table": table, **result.as_dict()})
    elif not (result.snapshots or not result.plan.is_empty):
        print_text(f"{table} has no deletes to rewrite: {counted(result.plan.files, 'delete file')}, all good")
    else:
        print_text(str(result))


@click.command(cls=SnapshotCommand)
@table_argument()
@where_option()
@branch_option()
@click.option("--dry-run", is_flag=True, help="Change nothing; show what would be done.")
@click.pass_obj
def convert_deletes(settings: Settings, table: str, where: str | None, *, branch: str, dry_run: bool) -> None:
    """Replace equality deletes by position deletes, or deletion vectors, so that scans are faster. No row changes.

    Deletes that apply to no data file are dropped. With --where, only the deletes of files that may hold matching rows
    are converted.
    """
    with open_lake(settings) as lake:
        opened = open_branch(lake, table, branch)
        with show_progress(f"reading keys of {opened.name}"):
            snapshot = opened.convert_equality_deletes(where, dry_run=dry_run)
    found = {key: (summary_number(snapshot, key) or 0) if snapshot else 0 for key in CONVERTED}
    if settings.as_json:
        named = None if snapshot is None or dry_run else str(snapshot.snapshot_id)
        print_json({"table": table, "snapshot-id": named, "is-dry-run": dry_run, **found})
    elif snapshot is None:
        print_text(f"{table} has no equality deletes to convert")
    else:
        removed = counted(found["removed-equality-delete-files"], "equality delete file")
        positions = counted(found["added-position-deletes"], "position")
        added = counted(found["added-delete-files"], "delete file")
        made = f"{removed} of {table} by {positions} in {added}"
        print_text(f"would replace {made}" if dry_run else f"replaced {made} as snapshot {snapshot.snapshot_id}")
