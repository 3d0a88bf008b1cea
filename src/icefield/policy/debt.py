"""Measure what upkeep a table needs: for each step, how many times what makes it due has come together.

    compact              files to rewrite, over how many make a level full; each file with many deleted rows counts as a
                         full level, and so does one that is too large or of an older partition spec
    convert-deletes      equality delete files, over the same number; due from the first one on
    rewrite-deletes      delete files to rewrite or to drop, over the same number
    rewrite-manifests    manifests that are not good, over `icefield.upkeep.rewrite-manifests.min-manifests`
    expire               expired snapshots, over those that stay; due from the first one on
    orphans              time since the last search, over the interval; due if there was none
    sweep                bytes of marked files that are due, over those of live data files; due from the first mark on

A step is due from 1 on. Only metadata and marks are read; no directory of data files is listed.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from icefield.commit.action import CommitTarget, WriteContext
from icefield.commit.actions.expire import ExpireSnapshots
from icefield.commit.actions.rewrite_manifests import RewriteManifests
from icefield.commit.operations.tables import TableVersion
from icefield.compaction.compact import Compaction
from icefield.compaction.options import NO_LIMIT, CompactionLimit, CompactionRequest
from icefield.compaction.plan import Reason
from icefield.compaction.rewrite_deletes import DeleteRewrite
from icefield.dml.head import LiveHead
from icefield.dml.write import TableWrite
from icefield.engine.choose import EngineName
from icefield.errors import IcefieldError
from icefield.expr.bind.bound import TRUE
from icefield.leases.folder import gc_folders, seen_time_ms
from icefield.marks.grace import grace_of
from icefield.marks.mark import list_marks, read_unless_done
from icefield.model.snapshot import MAIN
from icefield.plan.plan import plan_scan
from icefield.plan.versions import resolve_version
from icefield.policy.settings import Policy, Step
from icefield.properties.compaction import COMPACTION_MIN_INPUT_FILES
from icefield.properties.upkeep import UPKEEP_MIN_MANIFESTS, UPKEEP_ORPHANS_INTERVAL_MS
from icefield.report.measure import count_deletes
from icefield.upkeep.searches import last_search_ms

HOUR_MS = 3600 * 1000
_TOGETHER = (Reason.LEVEL_FULL, Reason.FEW_BYTES)  # files that are rewritten because there are many of them


@dataclass(frozen=True)
class StepDebt:
    """What one step would work on.

    Attributes:
        step: The name of the step.
        debt: How many times what makes the step due has come together; it is due from 1 on.
        measured: The counts behind it.
        off: Why the step is not done, whatever its debt; None if it is.
        error: What kept the step from being measured.
    """

    step: Step
    debt: float = 0.0
    measured: Mapping[str, int] = field(default_factory=dict)
    off: str | None = None
    error: str | None = None

    @property
    def is_due(self) -> bool:
        """Whether the step is to be done."""
        return self.off is None and self.debt >= 1


def measure_steps(head: LiveHead, policy: Policy) -> list[StepDebt]:
    """Measure the steps of one table that its policy allows, in their order."""
    measuring = _Measuring(head, head.load(), policy)
    return [_measure(measuring, step, policy) for step in Step]


def _measure(measuring: "_Measuring", step: Step, policy: Policy) -> StepDebt:
    try:
        if (off := policy.why_off(step)) is not None:
            return StepDebt(step, off=off)
        debt, measured = _MEASURES[step](measuring)
    except IcefieldError as error:
        return StepDebt(step, error=str(error))
    return StepDebt(step, debt, measured)


def begin_compaction(
    head: LiveHead, ref: str = MAIN, limit: CompactionLimit = NO_LIMIT, engine: EngineName | None = None
) -> Compaction:
    """Return a compaction of a branch by the table's properties."""
    return Compaction(lambda: _begin(head, ref, engine), CompactionRequest(), lambda _: None, limit)


def begin_delete_rewrite(head: LiveHead, engine: EngineName | None = None) -> DeleteRewrite:
    """Return a rewrite of the position deletes of the main branch."""
    return DeleteRewrite(lambda: _begin(head, MAIN, engine))


def _begin(head: LiveHead, ref: str, engine: EngineName | None) -> TableWrite:
    return replace(TableWrite.begin(head, CommitTarget(ref)), asked=engine)


class _Measuring:
    """What several measures of one table need."""

    def __init__(self, head: LiveHead, version: TableVersion, policy: Policy) -> None:
        self._head = head
        self._metadata = version.metadata
        self._policy = policy
        self._now_ms: int | None = None

    def convert_deletes(self) -> tuple[float, dict[str, int]]:
        found = count_deletes(self._head.backend.reading, self._metadata)
        files = found.equality_delete_files
        full = COMPACTION_MIN_INPUT_FILES.read(self._metadata.properties)
        measured = {"equality-delete-files": files, "equality-deletes": found.equality_deletes}
        return max(1.0, files / full) if files else 0.0, measured

    def compact(self) -> tuple[float, dict[str, int]]:
        plan = begin_compaction(self._head).dry_run().plan
        together = sum(count for reason, count in plan.reasons.items() if reason in _TOGETHER)
        alone = plan.files_to_rewrite - together
        measured = {
            "files": plan.files,
            "files-to-rewrite": plan.files_to_rewrite,
            "bytes-to-rewrite": plan.bytes_to_rewrite,
        }
        return together / plan.thresholds.min_input_files + alone, measured

    def rewrite_deletes(self) -> tuple[float, dict[str, int]]:
        plan = begin_delete_rewrite(self._head).dry_run().plan
        measured = {
            "delete-files": plan.files,
            "delete-files-to-rewrite": plan.files_to_rewrite,
            "dangling-delete-files": plan.files_dangling,
        }
        full = COMPACTION_MIN_INPUT_FILES.read(self._metadata.properties)
        return (plan.files_to_rewrite + plan.files_dangling) / full, measured

    def rewrite_manifests(self) -> tuple[float, dict[str, int]]:
        bad = RewriteManifests().count(self._metadata, WriteContext.of(self._head.backend))
        return bad / UPKEEP_MIN_MANIFESTS.read(self._policy.properties), {"manifests-to-rewrite": bad}

    def expire(self) -> tuple[float, dict[str, int]]:
        expired = ExpireSnapshots().find(self._metadata, self._head.backend.ambient.now_ms())
        count, refs = len(expired.snapshot_ids), len(expired.refs)
        stay = max(1, len(self._metadata.snapshots) - count)
        measured = {"snapshots": len(self._metadata.snapshots), "expired-snapshots": count, "expired-refs": refs}
        return max(1.0, count / stay) if count or refs else 0.0, measured

    def orphans(self) -> tuple[float, dict[str, int]]:
        last_ms = last_search_ms(self._head.backend, self._metadata)
        if last_ms is None:
            return 1.0, {"searches": 0}
        since_ms = max(0, self._store_time_ms() - last_ms)
        interval_ms = UPKEEP_ORPHANS_INTERVAL_MS.read(self._policy.properties)
        return since_ms / interval_ms, {"hours-since-search": since_ms // HOUR_MS}

    def sweep(self) -> tuple[float, dict[str, int]]:
        store = self._head.backend.store
        marks = list_marks(store, gc_folders(self._metadata, store))
        grace = {mark.reason: grace_of(self._metadata.properties, mark.reason) for mark in marks}
        due = [mark for mark in marks if self._store_time_ms() - mark.made_ms >= grace[mark.reason]]
        read = (read_unless_done(store, mark, self._metadata.table_uuid) for mark in due)
        files = [each for each in read if each is not None]
        size = sum(each.total_bytes for each in files)
        measured = {"marks-due": len(files), "files-due": sum(each.num_rows for each in files), "bytes-due": size}
        return max(1.0, size / max(1, self._live_bytes())) if files else 0.0, measured

    def _live_bytes(self) -> int:
        # Not by a plan of compaction: thresholds that contradict each other must not keep files from deletion.
        version = resolve_version(self._metadata, None)
        return plan_scan(self._head.backend.reading, self._metadata, version, TRUE).files.total_bytes

    def _store_time_ms(self) -> int:
        if self._now_ms is None:
            backend = self._head.backend
            folder = gc_folders(self._metadata, backend.store)[0]
            self._now_ms = seen_time_ms(backend.store, folder, backend.ambient)
        return self._now_ms


_MEASURES = {
    Step.CONVERT_DELETES: _Measuring.convert_deletes,
    Step.COMPACT: _Measuring.compact,
    Step.REWRITE_DELETES: _Measuring.rewrite_deletes,
    Step.REWRITE_MANIFESTS: _Measuring.rewrite_manifests,
    Step.EXPIRE: _Measuring.expire,
    Step.ORPHANS: _Measuring.orphans,
    Step.SWEEP: _Measuring.sweep,
}
