"""Changes that only some of several tables have: what is left when a job that changes them one by one stops between.

A catalog without transactions over several tables cannot prevent that, but idempotency keys show it: a job that writes
each batch to all tables under one key has the key in all of them, or was interrupted. Repeating the job with the same
keys completes it: tables that have a key skip the change.

    orders   k1 k2 k3       stream clicks at batch 7
    lines    k1 k2          stream clicks at batch 6     ->  lines lacks k3, and batch 7
"""

from collections.abc import Mapping, Sequence

from icefield.commit.validate.key_history import Memory, load_memory
from icefield.fsck.finding import Check, Findings
from icefield.model.metadata import TableMetadata
from icefield.model.snapshot import MAIN
from icefield.properties.table import COMMIT_TOKENS_KEPT


def check_together(tables: Mapping[str, TableMetadata], findings: Findings) -> None:
    """Report keys and batches on `main` that some of the tables lack."""
    memories = {name: load_memory(metadata.properties, MAIN) for name, metadata in tables.items()}
    for name, metadata in tables.items():
        kept = COMMIT_TOKENS_KEPT.read(metadata.properties)
        own = memories[name].idempotency_keys
        missing: dict[str, str] = {}
        for other, memory in memories.items():
            if other != name:
                missing.update((key, other) for key in _lacking(own, memory.idempotency_keys, forgets=len(own) >= kept))
        for key, other in missing.items():
            findings.add(
                Check.HALF_CHANGED,
                f"{name} lacks the change with the idempotency key {key!r}, which {other} has;"
                " repeat the change with that key",
            )
    _check_streams(memories, findings)


def _lacking(own: Sequence[str], other: Sequence[str], *, forgets: bool) -> list[str]:
    """Return the keys of another table that a table lacks; of one that forgets old keys, only after a common one."""
    known = set(own)
    first = next((at for at, key in enumerate(other) if key in known), len(other))
    return [key for at, key in enumerate(other) if key not in known and (not forgets or at > first)]


def _check_streams(memories: Mapping[str, Memory], findings: Findings) -> None:
    streams = dict.fromkeys(stream for memory in memories.values() for stream in memory.marks)
    for stream in streams:
        newest = max(memory.marks.get(stream, -1) for memory in memories.values())
        for name, memory in memories.items():
            at = memory.marks.get(stream)
            if at != newest:
                has = "has no batch" if at is None else f"is at batch {at}"
                findings.add(
                    Check.HALF_CHANGED,
                    f"{name} {has} of the stream {stream!r}, and another table is at batch {newest};"
                    " restart the stream from its checkpoint",
                )
