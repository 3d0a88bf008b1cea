"""Idempotency keys: a change that is repeated under its key is not applied twice.

    table.append(rows, idempotency_key="job-7/batch-3")              a plain key: any string, used once
    table.append(rows, idempotency_key=StreamBatch("clicks", 17))    a batch of a named stream, whose numbers increase

The key is written to the summary of the snapshot, and in the same commit to the table's properties (`key_history`), so
that it outlives the snapshot. It is looked up before the change is proposed, on every base. So a retry after a lost
response, a second run of a job, or two concurrent runs are committed once.

Committed means: in the history of the target branch. Raises InvalidInput for an invalid key, and for a key that was
used by a snapshot outside that history; ConcurrentChange if two writers share a stream.
"""

import re
from dataclasses import dataclass
from enum import Enum

from icefield.commit.validate.ancestry import contains
from icefield.commit.validate.key_history import (
    BATCH_KEY,
    IDEMPOTENCY_KEY,
    STREAM_KEY,
    recorded_batch,
    recorded_branches,
    recorded_keys,
)
from icefield.errors import ConcurrentChange, InvalidInput
from icefield.model.metadata import TableMetadata
from icefield.model.snapshot import Snapshot

MAX_BATCH = (1 << 63) - 1
_KEY = re.compile(r"[\w.:/@+-]{1,200}", re.ASCII)
_STREAM = re.compile(r"[\w.:/+-]{1,100}", re.ASCII)


@dataclass(frozen=True)
class StreamBatch:
    """An idempotency key for a stream: batch `batch` of the stream called `stream`.

    Every batch up to the highest that landed on a branch counts as landed there. Numbers must grow from batch to batch,
    and may leave gaps. Only one writer at a time may write a stream.
    """

    stream: str
    batch: int

    def __str__(self) -> str:
        return f"batch {self.batch} of stream {self.stream!r}"


IdempotencyKey = str | StreamBatch


@dataclass(frozen=True)
class Landed:
    """A change that was committed before; its snapshot, unless that has expired."""

    snapshot: Snapshot | None


def check_idempotency_key(idempotency_key: object) -> None:
    """Raise InvalidInput for a key that could not be distinguished from other text in metadata."""
    if isinstance(idempotency_key, StreamBatch):
        _check_batch(idempotency_key)
    elif not isinstance(idempotency_key, str) or not _KEY.fullmatch(idempotency_key):
        raise InvalidInput(
            f"{idempotency_key!r} is not a valid idempotency key",
            hint="Use 1 to 200 letters, digits and . : / @ + - _, or a StreamBatch(stream, batch)",
        )


def find_landed(metadata: TableMetadata, ref: str, idempotency_key: IdempotencyKey | None) -> Landed | None:
    """Return the change that was committed under this key on a branch, or None."""
    if idempotency_key is None:
        return None
    if isinstance(idempotency_key, StreamBatch):
        return _find_batch(metadata, ref, idempotency_key)
    return _find_key(metadata, ref, idempotency_key)


def was_made(metadata: TableMetadata, ref: str, idempotency_key: IdempotencyKey | None) -> bool:
    """Return whether another run committed the change since this run of it began."""
    landed = find_landed(metadata, ref, idempotency_key)
    if isinstance(idempotency_key, StreamBatch) and landed is not None and landed.snapshot is None:
        mark = recorded_batch(metadata.properties, ref, idempotency_key.stream)
        raise ConcurrentChange(
            f"cannot write {idempotency_key}: another writer concurrently wrote batch {mark} to {ref}",
            hint="Nothing was changed; let one writer at a time write a stream",
        )
    return landed is not None


class _InHistory(Enum):
    """The relation of a snapshot to the head of a branch."""

    INSIDE = "in its history"
    OUTSIDE = "not in its history"
    UNKNOWN = "older than its remaining history"


def _find_key(metadata: TableMetadata, ref: str, idempotency_key: str) -> Landed | None:
    recorded = idempotency_key in recorded_keys(metadata.properties, ref)
    found = list(metadata.snapshots.find_all_by_summary(IDEMPOTENCY_KEY, idempotency_key))
    for snapshot in found:
        found_in = _find_in_history(metadata, ref, snapshot)
        if found_in is _InHistory.INSIDE or (found_in is _InHistory.UNKNOWN and recorded):
            return Landed(snapshot)
    if found:
        raise _used_elsewhere(f"idempotency key {idempotency_key!r}", ref, found[0])
    if recorded:
        return Landed(None)
    for branch in recorded_branches(metadata.properties):
        if idempotency_key in recorded_keys(metadata.properties, branch):
            raise InvalidInput(
                f"idempotency key {idempotency_key!r} was used on branch {branch!r}, not on {ref}; it has expired",
                hint=_ANOTHER,
            )
    return None


def _find_batch(metadata: TableMetadata, ref: str, idempotency_key: StreamBatch) -> Landed | None:
    mark = recorded_batch(metadata.properties, ref, idempotency_key.stream)
    found = _snapshots_of(metadata, idempotency_key.stream, idempotency_key.batch)
    for snapshot in found:
        if _find_in_history(metadata, ref, snapshot) is _InHistory.INSIDE:
            return Landed(snapshot)
    if mark is None or idempotency_key.batch > mark:
        return None
    last = _snapshots_of(metadata, idempotency_key.stream, mark)
    # Other engines roll a branch back without updating the key history.
    if last and all(_find_in_history(metadata, ref, each) is _InHistory.OUTSIDE for each in last):
        raise _used_elsewhere(
            f"batch {mark} of stream {idempotency_key.stream!r}, the highest committed,", ref, last[0]
        )
    return Landed(found[0] if found else None)


def _snapshots_of(metadata: TableMetadata, stream: str, batch: int) -> list[Snapshot]:
    found = metadata.snapshots.find_all_by_summary(STREAM_KEY, stream)
    return [snapshot for snapshot in found if snapshot.summary.get(BATCH_KEY) == str(batch)]


def _find_in_history(metadata: TableMetadata, ref: str, snapshot: Snapshot) -> _InHistory:
    found = _find_in_ancestors(metadata, ref, snapshot)
    # Its branch may have been published as one snapshot.
    was_published = found is not _InHistory.INSIDE and contains(metadata, metadata.ref_head(ref), snapshot.snapshot_id)
    return _InHistory.INSIDE if was_published else found


def _find_in_ancestors(metadata: TableMetadata, ref: str, snapshot: Snapshot) -> _InHistory:
    last: Snapshot | None = None
    for last in metadata.ancestors(metadata.ref_head(ref)):
        if last.snapshot_id == snapshot.snapshot_id:
            return _InHistory.INSIDE
        # Sequence numbers decrease from child to parent; version 1 has none. (spec: Sequence Numbers)
        if 0 < last.sequence_number < snapshot.sequence_number:
            return _InHistory.OUTSIDE
    return _InHistory.OUTSIDE if last is None or last.parent_snapshot_id is None else _InHistory.UNKNOWN


_ANOTHER = "Use another idempotency key to make the change here too, or publish the branch that has it"


def _used_elsewhere(what: str, ref: str, snapshot: Snapshot) -> InvalidInput:
    return InvalidInput(
        f"{what} was used by snapshot {snapshot.snapshot_id}, which is not in the history of {ref}: it is on another "
        f"branch, or was rolled back",
        hint=_ANOTHER,
    )


def _check_batch(idempotency_key: StreamBatch) -> None:
    if not isinstance(idempotency_key.stream, str) or not _STREAM.fullmatch(idempotency_key.stream):
        raise InvalidInput(
            f"{idempotency_key.stream!r} is not a valid stream name",
            hint="Use 1 to 100 letters, digits and . : / + - _",
        )
    if type(idempotency_key.batch) is not int or not 0 <= idempotency_key.batch <= MAX_BATCH:
        raise InvalidInput(
            f"the batch of a stream must be a number from 0 to {MAX_BATCH}, not {idempotency_key.batch!r}"
        )
