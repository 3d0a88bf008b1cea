"""Checks of a table's metadata file alone: refs, history, sequence numbers, row ids, schemas. Nothing is read."""

from collections import Counter
from collections.abc import Mapping, Sequence

from icefield.errors import CorruptFile
from icefield.fsck.finding import Check, Findings
from icefield.model.metadata import TableMetadata
from icefield.model.snapshot import Snapshot

# Clocks of writers differ; Iceberg Java tolerates as much.
MOST_SKEW_MS = 60_000


def check_metadata(metadata: TableMetadata, findings: Findings) -> list[Snapshot]:
    """Check one version of a table, and return its snapshots."""
    try:
        snapshots = list(metadata.snapshots)
    except CorruptFile as corrupt:
        findings.add(Check.UNREADABLE_FILES, corrupt.why, location=corrupt.location)
        return []
    by_id = {snapshot.snapshot_id: snapshot for snapshot in snapshots}
    _check_refs(metadata, by_id, findings)
    _check_ids(snapshots, findings)
    _check_log(metadata, by_id, findings)
    in_cycles = _check_cycles(by_id, findings)
    _check_sequence_numbers(metadata, snapshots, findings)
    _check_parents(by_id, in_cycles, findings)
    if metadata.has_row_ids:
        _check_row_ids(metadata, by_id, findings)
    known = {schema.schema_id for schema in metadata.schemas}
    for snapshot in snapshots:
        if snapshot.schema_id is not None and snapshot.schema_id not in known:
            findings.add(
                Check.SCHEMAS,
                f"snapshot {snapshot.snapshot_id} has the schema {snapshot.schema_id}, which the table does not have",
                snapshot_id=snapshot.snapshot_id,
            )
    return snapshots


def _check_refs(metadata: TableMetadata, by_id: Mapping[int, Snapshot], findings: Findings) -> None:
    for name, ref in metadata.refs.items():
        if ref.snapshot_id not in by_id:
            findings.add(
                Check.REFS,
                f"the {ref.kind} {name!r} points at snapshot {ref.snapshot_id}, which the table does not have",
                snapshot_id=ref.snapshot_id,
            )


def _check_ids(snapshots: Sequence[Snapshot], findings: Findings) -> None:
    for snapshot_id, count in Counter(s.snapshot_id for s in snapshots).items():
        if count > 1:
            findings.add(Check.HISTORY, f"{count} snapshots have the id {snapshot_id}", snapshot_id=snapshot_id)


def _check_log(metadata: TableMetadata, by_id: Mapping[int, Snapshot], findings: Findings) -> None:
    latest = None
    for entry in metadata.snapshot_log:
        if entry.snapshot_id not in by_id:
            findings.add(
                Check.HISTORY,
                f"the snapshot log names snapshot {entry.snapshot_id}, which the table does not have",
                snapshot_id=entry.snapshot_id,
            )
        if latest is not None and entry.timestamp_ms < latest - MOST_SKEW_MS:
            findings.add(
                Check.HISTORY,
                f"the snapshot log goes back in time at snapshot {entry.snapshot_id}",
                snapshot_id=entry.snapshot_id,
            )
        latest = entry.timestamp_ms
    last = metadata.snapshot_log[-1].snapshot_id if metadata.snapshot_log else None
    # A table that was replaced by an empty one has no current snapshot.
    if last in by_id and metadata.current_snapshot_id not in (None, last):
        findings.add(
            Check.HISTORY,
            f"the snapshot log ends with snapshot {last}, but the current one is {metadata.current_snapshot_id}",
            snapshot_id=last,
        )


def _check_cycles(by_id: Mapping[int, Snapshot], findings: Findings) -> set[int]:
    """Report snapshots that are their own ancestors, one of each cycle; return all of them."""
    done: set[int] = set()
    in_cycles: set[int] = set()
    for start in by_id:
        path: dict[int, None] = {}
        at: int | None = start
        while at is not None and at in by_id and at not in done and at not in path:
            path[at] = None
            at = by_id[at].parent_snapshot_id
        if at is not None and at in path:
            findings.add(Check.HISTORY, f"snapshot {at} is its own ancestor", snapshot_id=at)
            steps = list(path)
            in_cycles.update(steps[steps.index(at) :])
        done.update(path)
    return in_cycles


def _check_sequence_numbers(metadata: TableMetadata, snapshots: Sequence[Snapshot], findings: Findings) -> None:
    # Snapshots of version 1 have the number 0. (spec: Sequence Numbers)
    numbered = {s.snapshot_id: s.sequence_number for s in snapshots if s.sequence_number > 0}
    for number, count in Counter(numbered.values()).items():
        if count > 1:
            findings.add(Check.SEQUENCE_NUMBERS, f"{count} snapshots have the sequence number {number}")
    for snapshot_id, number in numbered.items():
        if number > metadata.last_sequence_number:
            findings.add(
                Check.SEQUENCE_NUMBERS,
                f"snapshot {snapshot_id} has the sequence number {number}, but the table's last one is"
                f" {metadata.last_sequence_number}",
                snapshot_id=snapshot_id,
            )


def _check_parents(by_id: Mapping[int, Snapshot], in_cycles: set[int], findings: Findings) -> None:
    for snapshot in by_id.values():
        parent = by_id.get(snapshot.parent_snapshot_id or 0)
        is_older = parent is not None and snapshot.sequence_number < parent.sequence_number
        if parent is not None and is_older and snapshot.snapshot_id not in in_cycles:
            findings.add(
                Check.SEQUENCE_NUMBERS,
                f"snapshot {snapshot.snapshot_id} has the sequence number {snapshot.sequence_number}, less than its"
                f" parent's {parent.sequence_number}",
                snapshot_id=snapshot.snapshot_id,
            )


def _check_row_ids(metadata: TableMetadata, by_id: Mapping[int, Snapshot], findings: Findings) -> None:
    ranges = sorted(
        (s.first_row_id, s.first_row_id + (s.added_rows or 0), s.snapshot_id)
        for s in by_id.values()
        if s.first_row_id is not None
    )
    end_before = 0
    for first, end, snapshot_id in ranges:
        if end > metadata.next_row_id:
            findings.add(
                Check.ROW_IDS,
                f"snapshot {snapshot_id} assigned row ids up to {end}, but the table's next one is"
                f" {metadata.next_row_id}",
                snapshot_id=snapshot_id,
            )
        if first < end_before and end > first:
            findings.add(
                Check.ROW_IDS,
                f"snapshot {snapshot_id} assigned row ids from {first}, which another snapshot had assigned",
                snapshot_id=snapshot_id,
            )
        end_before = max(end_before, end)
