"""Do one step of the upkeep of a table, and say what it did.

Each step is safe beside readers, writers, and other processes that do the same.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from icefield.commit.action import CommitTarget
from icefield.commit.actions.expire import ExpireSnapshots
from icefield.commit.actions.rewrite_manifests import RewriteManifests
from icefield.compaction.options import CompactionLimit
from icefield.dml.convert_deletes import convert_equality_deletes
from icefield.dml.head import LiveHead
from icefield.dml.write import TableWrite
from icefield.engine.choose import EngineName
from icefield.errors import CommitConflict, ConcurrentChange, IcefieldError, LeaseLost, NoSuchTable
from icefield.model.snapshot import MAIN
from icefield.policy.budget import Budget
from icefield.policy.debt import StepDebt, begin_compaction, begin_delete_rewrite
from icefield.policy.result import Outcome, StepResult
from icefield.policy.settings import Step
from icefield.upkeep.expire import expire_snapshots
from icefield.upkeep.orphans import remove_orphans, safe_age_ms
from icefield.upkeep.sweep import sweep

NO_TIME = "the time of the run is over"
DROPPED = "the table was dropped"
COMMIT_BYTES = 1024 * 1024 * 1024  # of a compaction that may be stopped: what is begun is finished


@dataclass(frozen=True)
class Work:
    """What a step works with."""

    head: LiveHead
    budget: Budget
    engine: EngineName | None = None


def plan_step(debt: StepDebt) -> StepResult:
    """Return what a dry run says of a step."""
    known = StepResult(debt.step, debt.debt, debt.measured)
    if debt.error is not None:
        return replace(known, outcome=Outcome.FAILED, reason=debt.error)
    if debt.off is not None:
        return replace(known, outcome=Outcome.SKIPPED, reason=debt.off)
    return replace(known, outcome=Outcome.PLANNED if debt.is_due else Outcome.NOT_DUE)


def do_step(planned: StepResult, work: Work) -> StepResult:
    """Do a step that was planned. What fails is in the result."""
    if planned.outcome is not Outcome.PLANNED:
        return planned
    if work.budget.is_over:
        return skip_step(planned, NO_TIME)
    ambient = work.budget.ambient
    began = ambient.monotonic()
    try:
        done = _STEPS[planned.step](planned, work)
    except (CommitConflict, ConcurrentChange, LeaseLost) as error:
        done = skip_step(planned, f"gave way to other writers: {error}")
    except NoSuchTable:
        done = skip_step(planned, DROPPED)
    except IcefieldError as error:
        done = replace(planned, outcome=Outcome.FAILED, reason=str(error))
    except Exception as error:  # the other tables must not suffer from it
        done = replace(planned, outcome=Outcome.FAILED, reason=f"{type(error).__name__}: {error}")
    return replace(done, seconds=ambient.monotonic() - began)


def skip_step(planned: StepResult, reason: str) -> StepResult:
    """Return a step that was planned and not done."""
    if planned.outcome is not Outcome.PLANNED:
        return planned
    return replace(planned, outcome=Outcome.SKIPPED, reason=reason)


def _convert_deletes(planned: StepResult, work: Work) -> StepResult:
    write = TableWrite.begin(work.head, CommitTarget(MAIN))
    made = convert_equality_deletes(replace(write, asked=work.engine), None)
    if made is None:
        return replace(planned, outcome=Outcome.DONE, reason="nothing was left to convert")
    removed = made.summary.get("removed-equality-delete-files", "0")
    return replace(
        planned,
        outcome=Outcome.DONE,
        reason=f"converted {removed} equality delete files",
        bytes_written=int(made.summary.get("added-files-size", 0)),
    )


def _compact(planned: StepResult, work: Work) -> StepResult:
    budget = work.budget
    commit_bytes = None if budget.deadline is None else COMMIT_BYTES
    limit = CompactionLimit(lambda: budget.is_over, budget.bytes_left, commit_bytes)
    result = begin_compaction(work.head, limit=limit, engine=work.engine).run()
    work.budget.spend(result.bytes_removed)
    if result.groups_over_limit and not result.groups_done:
        return skip_step(planned, NO_TIME if work.budget.is_over else _no_bytes(work))
    stopped = f"; {result.groups_over_limit:,} groups are left for the next run" if result.groups_over_limit else ""
    left_out = f"; {result.groups_left_out:,} groups gave way to other writers" if result.groups_left_out else ""
    return replace(
        planned,
        outcome=Outcome.DONE,
        reason=f"{result.files_removed:,} files replaced by {result.files_added:,}{left_out}{stopped}",
        bytes_read=result.bytes_removed,
        bytes_written=result.bytes_added,
    )


def _no_bytes(work: Work) -> str:
    return f"no group of files fits into the {work.budget.bytes_left:,} bytes that are left of the run"


def _rewrite_deletes(planned: StepResult, work: Work) -> StepResult:
    result = begin_delete_rewrite(work.head, work.engine).run()
    removed, added = (result.count(f"{word}-delete-files") for word in ("removed", "added"))
    return replace(
        planned,
        outcome=Outcome.DONE,
        reason=f"{removed:,} delete files replaced by {added:,}",
        bytes_written=result.count("added-files-size"),
    )


def _rewrite_manifests(planned: StepResult, work: Work) -> StepResult:
    action = RewriteManifests()
    made = work.head.commit([action]).snapshots.find(action.snapshot_id or 0)
    if made is None:
        return replace(planned, outcome=Outcome.DONE, reason="nothing was to gain")
    replaced, created = (made.summary.get(f"manifests-{word}", "0") for word in ("replaced", "created"))
    return replace(planned, outcome=Outcome.DONE, reason=f"{replaced} manifests replaced by {created}")


def _expire(planned: StepResult, work: Work) -> StepResult:
    result = expire_snapshots(work.head, ExpireSnapshots())
    known = replace(
        planned,
        outcome=Outcome.DONE,
        reason=f"{len(result.snapshot_ids):,} snapshots expired, {result.files_marked:,} files marked",
        bytes_marked=result.bytes_marked,
        bytes_freed=result.swept.bytes_deleted if result.swept is not None else 0,
    )
    if result.unfinished is not None:
        return replace(known, outcome=Outcome.FAILED, reason=f"{known.reason}; unfinished: {result.unfinished}")
    return known


def _orphans(planned: StepResult, work: Work) -> StepResult:
    result = remove_orphans(work.head, older_than_ms=safe_age_ms(work.head.load().metadata.properties))
    return replace(
        planned,
        outcome=Outcome.DONE,
        reason=f"{result.files_listed:,} files listed, {result.files_marked:,} orphan files marked",
        bytes_marked=result.bytes_marked,
        bytes_freed=result.swept.bytes_deleted if result.swept is not None else 0,
    )


def _sweep(planned: StepResult, work: Work) -> StepResult:
    result = sweep(work.head)
    return replace(
        planned,
        outcome=Outcome.DONE,
        reason=f"{result.files_deleted:,} files deleted",
        bytes_freed=result.bytes_deleted,
    )


_STEPS: Mapping[Step, Callable[[StepResult, Work], StepResult]] = {
    Step.CONVERT_DELETES: _convert_deletes,
    Step.COMPACT: _compact,
    Step.REWRITE_DELETES: _rewrite_deletes,
    Step.REWRITE_MANIFESTS: _rewrite_manifests,
    Step.EXPIRE: _expire,
    Step.ORPHANS: _orphans,
    Step.SWEEP: _sweep,
}
