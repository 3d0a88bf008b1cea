"""Changes that two branches made under one idempotency key: together, their rows would be there twice.

    main      A ── M1          M1: batch 7 of a stream, written again after a rollback
               └── B1          B1: batch 7, which main had before it was rolled back

A cherry-pick takes the key along, so that the writer of it does not make the change again. The batch of a stream keeps
its number only if it is the next one of the branch: by that number, all batches before it count as committed.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from icefield.arguments import whole_number
from icefield.commit.validate.ancestry import find_origins
from icefield.commit.validate.idempotency_key import IdempotencyKey, StreamBatch
from icefield.commit.validate.key_history import (
    BATCH_KEY,
    IDEMPOTENCY_KEY,
    PREVIOUS_KEY,
    STREAM_KEY,
    recorded_batch,
    summary_of_batch,
)
from icefield.commit.validate.reverts import find_covered, find_reverts
from icefield.model.metadata import TableMetadata
from icefield.model.snapshot import Snapshot


@dataclass(frozen=True)
class Repeated:
    """A change that two versions made, each in its own snapshot."""

    key: IdempotencyKey
    ours: Snapshot
    theirs: Snapshot

    def __str__(self) -> str:
        return (
            str(self.key) if isinstance(self.key, StreamBatch) else f"the change with the idempotency key {self.key!r}"
        )


def find_repeated(metadata: TableMetadata, ours: Iterable[Snapshot], theirs: Iterable[Snapshot]) -> Repeated | None:
    """Find a change that both sides made, and none has reverted; a cherry-pick is the change that was picked."""
    known = {key: snapshot for snapshot, key in _made(metadata, ours)}
    for snapshot, key in _made(metadata, theirs) if known else ():
        if key in known and _are_apart(metadata, known[key], snapshot):
            return Repeated(key, known[key], snapshot)
    return None


def kept_key(metadata: TableMetadata, ref: str, picked: Snapshot) -> dict[str, str]:
    """Return the part of the summary by which a cherry-pick on a branch has the key of the snapshot."""
    key = _key_of(picked.summary)
    if isinstance(key, StreamBatch):
        before = recorded_batch(metadata.properties, ref, key.stream)
        is_next = whole_number(picked.summary.get(PREVIOUS_KEY)) == before
        return summary_of_batch(metadata, ref, key.stream, key.batch) if is_next else {}
    return {} if key is None else {IDEMPOTENCY_KEY: key}


def _made(metadata: TableMetadata, snapshots: Iterable[Snapshot]) -> Iterator[tuple[Snapshot, IdempotencyKey]]:
    found = list(snapshots)
    keys = [(each, key) for each in found if (key := _key_of(each.summary)) is not None]
    if not keys:
        return
    targets = (target for _, target in find_reverts(metadata, found).values())
    undone = {each for target in targets for each in find_covered(metadata, target)}
    yield from ((each, key) for each, key in keys if each.snapshot_id not in undone)


def _are_apart(metadata: TableMetadata, one: Snapshot, other: Snapshot) -> bool:
    origins = ({each.snapshot_id, *find_origins(metadata, each)} for each in (one, other))
    return next(origins).isdisjoint(next(origins))


def _key_of(summary: Mapping[str, str]) -> IdempotencyKey | None:
    stream, batch = summary.get(STREAM_KEY), whole_number(summary.get(BATCH_KEY))
    if stream is not None and batch is not None:
        return StreamBatch(stream, batch)
    return summary.get(IDEMPOTENCY_KEY)
