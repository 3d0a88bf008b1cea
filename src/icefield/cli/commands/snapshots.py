"""icefield snapshots, history: list the versions of a table."""

from __future__ import annotations

import rich_click as click

from icefield.cli.options import table_argument
from icefield.cli.output import Column, moment, print_grid, print_json, talk
from icefield.cli.settings import LakeCommand, Settings
from icefield.cli.snapshot_facts import refs_of, summary_number
from icefield.deferred import deferred_imports

with deferred_imports(__name__):
    from icefield.cli.lakes import open_lake
    from icefield.model.metadata import TableMetadata
    from icefield.model.snapshot import Snapshot

SNAPSHOT_COLUMNS = (
    Column("snapshot", "right"),
    Column("parent", "right"),
    Column("committed"),
    Column("operation"),
    Column("rows added", "right"),
    Column("rows removed", "right"),
    Column("total rows", "right"),
    Column("total files", "right"),
    Column("refs"),
)
HISTORY_COLUMNS = (
    Column("current from"),
    Column("snapshot", "right"),
    Column("operation"),
    Column("ancestor of main"),
)


@click.command(cls=LakeCommand)
@table_argument()
@click.pass_obj
def snapshots(settings: Settings, table: str) -> None:
    """List the snapshots of a table, oldest first."""
    with open_lake(settings) as lake:
        metadata = lake.table(table).metadata
    if settings.as_json:
        print_json([snapshot_value(s, metadata) for s in metadata.snapshots])
        return
    if not len(metadata.snapshots):
        talk(f"{table} has no snapshots.")
        return
    print_grid(SNAPSHOT_COLUMNS, [_snapshot_row(s, metadata) for s in metadata.snapshots])


@click.command(cls=LakeCommand)
@table_argument()
@click.pass_obj
def history(settings: Settings, table: str) -> None:
    """List the snapshots that were current, with the time of each change."""
    with open_lake(settings) as lake:
        metadata = lake.table(table).metadata
    entries = _history(metadata)
    if settings.as_json:
        print_json(entries)
        return
    if not entries:
        talk(f"{table} has no snapshots.")
        return
    rows = [[e["made-current-at"], e["snapshot-id"], e["operation"], _yes(e["is-current-ancestor"])] for e in entries]
    print_grid(HISTORY_COLUMNS, rows)


def snapshot_value(snapshot: Snapshot, metadata: TableMetadata) -> dict[str, object]:
    """Describe a snapshot with plain values."""
    parent = snapshot.parent_snapshot_id
    return {
        "snapshot-id": str(snapshot.snapshot_id),
        "parent-snapshot-id": None if parent is None else str(parent),
        "sequence-number": snapshot.sequence_number,
        "committed-at": moment(snapshot.timestamp_ms),
        "operation": snapshot.operation,
        "schema-id": snapshot.schema_id,
        "refs": refs_of(snapshot, metadata),
        "manifest-list": snapshot.manifest_list,
        "summary": dict(snapshot.summary),
    }


def _snapshot_row(snapshot: Snapshot, metadata: TableMetadata) -> list[object]:
    parent = snapshot.parent_snapshot_id
    return [
        str(snapshot.snapshot_id),
        None if parent is None else str(parent),
        moment(snapshot.timestamp_ms),
        snapshot.operation,
        summary_number(snapshot, "added-records") or 0,
        summary_number(snapshot, "deleted-records") or 0,
        summary_number(snapshot, "total-records"),
        summary_number(snapshot, "total-data-files"),
        ", ".join(refs_of(snapshot, metadata)),
    ]


def _history(metadata: TableMetadata) -> list[dict[str, object]]:
    ancestors = {s.snapshot_id for s in metadata.ancestors(metadata.current_snapshot)}
    entries: list[dict[str, object]] = []
    for entry in metadata.snapshot_log:
        snapshot = metadata.snapshots.find(entry.snapshot_id)
        entries.append(
            {
                "made-current-at": moment(entry.timestamp_ms),
                "snapshot-id": str(entry.snapshot_id),
                "operation": snapshot.operation if snapshot else None,
                "is-current-ancestor": entry.snapshot_id in ancestors,
            }
        )
    return entries


def _yes(value: object) -> str:
    return "yes" if value else "no"
