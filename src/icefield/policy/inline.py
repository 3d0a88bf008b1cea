"""Compact the newest small files after a commit, in the process that made it, if the table asks for it.

The commit has landed before, so nothing that happens here can make it fail; what goes wrong is logged. It looks once in
as many commits as make a level full, at the files of the newest level alone, and rewrites at most
`icefield.upkeep.inline.max-bytes`. It works in this process, and only if no other process is at the upkeep of the
table. It gives way: if other writers change the files, or commit first again and again, it gives up.
"""

from icefield.commit.operations.retired_metadata import LOG
from icefield.commit.operations.tables import TableVersion
from icefield.compaction.options import CompactionLimit
from icefield.dml.head import LiveHead, TableHead
from icefield.engine.choose import EngineName
from icefield.leases.claim import take_claim
from icefield.model.snapshot import Snapshot
from icefield.policy.debt import begin_compaction
from icefield.properties.compaction import COMPACTION_MIN_INPUT_FILES
from icefield.properties.upkeep import UPKEEP_INLINE, UPKEEP_INLINE_BYTES

RETRIES = 3  # of its commit, after conflicts
IN_PROCESS: EngineName = "local"


def compact_inline(head: TableHead, ref: str, made: Snapshot | None) -> None:
    """Compact the newest small files of a branch if the table's properties say so; not in a transaction.

    made: what was committed.
    """
    known = head.known if isinstance(head, LiveHead) else None
    if made is None or known is None or UPKEEP_INLINE.key not in known.metadata.properties:
        return
    try:
        if UPKEEP_INLINE.read(known.metadata.properties) and _is_time(head, known, ref, made):
            own = LiveHead(head.backend, head.name, known)
            own.retries = RETRIES
            _compact(own, known, ref)
    except Exception as error:  # the commit of the caller has landed
        LOG.warning("inline compaction of %s gave up: %s: %s", head.name, type(error).__name__, error)


def _is_time(head: TableHead, known: TableVersion, ref: str, made: Snapshot) -> bool:
    """Return whether this process has not looked at the branch for as many commits as make a level full."""
    looks, branch = head.backend.inline_looks, (known.metadata.table_uuid, ref)
    width = COMPACTION_MIN_INPUT_FILES.read(known.metadata.properties)
    # Version 1 has no sequence numbers: there, it looks after every commit.
    if made.sequence_number and made.sequence_number - looks.get(branch, -width) < width:
        return False
    looks[branch] = made.sequence_number
    return True


def _compact(head: LiveHead, known: TableVersion, ref: str) -> None:
    most_bytes = UPKEEP_INLINE_BYTES.read(known.metadata.properties)
    limit = CompactionLimit(most_bytes=most_bytes, newest_only=True, rounds=1)
    if not begin_compaction(head, ref, limit, IN_PROCESS).dry_run().plan.groups:
        return
    claim = take_claim(head.backend.store, head.backend.ambient, known.metadata)
    if claim.lease is None:
        LOG.info("inline compaction of %s is left to %s", head.name, claim.holder)
        return
    try:
        result = begin_compaction(head, ref, limit, IN_PROCESS).run()
    finally:
        claim.close()
    if result.snapshot is not None:
        head.backend.inline_looks[known.metadata.table_uuid, ref] = result.snapshot.sequence_number
    LOG.info(
        "inline compaction of %s: %d files (%d bytes) replaced by %d, %d groups left out",
        head.name,
        result.files_removed,
        result.bytes_removed,
        result.files_added,
        result.groups_left_out,
    )
