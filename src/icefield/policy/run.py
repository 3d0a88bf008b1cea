"""Run the upkeep of a lake: measure its tables, and work on them, the worst debt first, within a budget.

    measure every table  ->  by debt  ->  of each: claim, measure again, do its steps, end the claim

Any number of machines may run at once. Each works on the tables that no other has claimed; a claim whose process died
lapses. A table that fails does not stop the others. Raises InvalidInput for a budget that cannot be.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from icefield.commit.relocate import Explain
from icefield.dml.head import LiveHead
from icefield.engine.choose import EngineName
from icefield.errors import IcefieldError, LeaseLost, NoSuchTable
from icefield.leases.claim import Claim, take_claim
from icefield.model.names import TableName, parse_table_name
from icefield.policy.budget import Budget
from icefield.policy.debt import measure_steps
from icefield.policy.result import Outcome, StepResult, TableUpkeepResult, UpkeepResult
from icefield.policy.settings import Policies
from icefield.policy.steps import DROPPED, NO_TIME, Work, do_step, plan_step, skip_step


@dataclass(frozen=True)
class UpkeepProgress:
    """How far a run is: the table and step that it begins, and how many tables are done. step: None when measuring."""

    table: str
    step: str | None
    tables: int
    of_tables: int


OnProgress = Callable[[UpkeepProgress], object]


@dataclass(frozen=True)
class UpkeepRun:
    """A run of upkeep over some tables of one lake.

    open: what opens a table; none is kept open, there may be many. explain: returns the error to report instead of one
    that was raised.
    """

    names: Sequence[TableName]
    open: Callable[[TableName], LiveHead]
    policies: Policies
    budget: Budget
    on_progress: OnProgress
    explain: Explain
    engine: EngineName | None = None

    def plan(self) -> UpkeepResult:
        """Return what would be done, in its order."""
        began = self.budget.ambient.monotonic()
        return UpkeepResult(self._measure_all(), is_dry_run=True, seconds=self._since(began))

    def run(self) -> UpkeepResult:
        """Do what is due, and return what was done."""
        began = self.budget.ambient.monotonic()
        measured = self._measure_all()
        done = [
            self._keep_up(planned, UpkeepProgress(planned.table, None, number, len(measured)))
            for number, planned in enumerate(measured)
        ]
        return UpkeepResult(done, seconds=self._since(began))

    def _since(self, began: float) -> float:
        return self.budget.ambient.monotonic() - began

    def _measure_all(self) -> list[TableUpkeepResult]:
        """Measure the tables, in half of the time; return them by debt.

        In random order, so that no table is always among those for which there was no time.
        """
        budget, ambient = self.budget.until_half(), self.budget.ambient
        measured: list[TableUpkeepResult] = []
        for name in sorted(self.names, key=lambda _: ambient.uniform(0, 1)):
            self.on_progress(UpkeepProgress(str(name), None, len(measured), len(self.names)))
            if budget.is_over:
                measured.append(TableUpkeepResult(str(name), skipped=NO_TIME))
            else:
                measured.append(self._measure(self.open(name)))
        return sorted(measured, key=lambda each: (-each.debt, each.table))

    def _measure(self, head: LiveHead) -> TableUpkeepResult:
        name = str(head.name)
        try:
            steps = measure_steps(head, self.policies.of(head.name, head.load().metadata))
        except NoSuchTable:
            return TableUpkeepResult(name, skipped=DROPPED)
        except IcefieldError as error:
            return TableUpkeepResult(name, error=str(self.explain(error)))
        except Exception as error:  # the other tables must not suffer from it
            return TableUpkeepResult(name, error=f"{type(error).__name__}: {error}")
        return TableUpkeepResult(name, [plan_step(step) for step in steps])

    def _keep_up(self, planned: TableUpkeepResult, progress: UpkeepProgress) -> TableUpkeepResult:
        """Do the steps of a table that are due, if no other process is at it."""
        if not any(step.outcome is Outcome.PLANNED for step in planned.steps):
            return planned
        if self.budget.is_over:
            return _skip(planned, NO_TIME)
        head = self.open(parse_table_name(planned.table))
        try:
            claim = take_claim(head.backend.store, head.backend.ambient, head.load().metadata)
        except NoSuchTable:
            return _skip(planned, DROPPED)
        except IcefieldError as error:
            return replace(_skip(planned, "the table cannot be claimed"), error=str(error))
        if claim.lease is None:
            return _skip(planned, f"{claim.holder} is at it")
        try:
            # Another process may have done it since.
            return self._do(head, self._measure(head), claim, progress)
        finally:
            claim.close()

    def _do(
        self, head: LiveHead, planned: TableUpkeepResult, claim: Claim, progress: UpkeepProgress
    ) -> TableUpkeepResult:
        work = Work(head, self.budget, self.engine)
        done: list[StepResult] = []
        for step in planned.steps:
            if step.outcome is Outcome.PLANNED:
                self.on_progress(replace(progress, step=str(step.step)))
            lost = _find_lost(claim)
            done.append(do_step(step, work) if lost is None else skip_step(step, lost))
        return replace(planned, steps=done)


def _find_lost(claim: Claim) -> str | None:
    """Return why a claim is lost; None if it is held, or if that is not known."""
    try:
        claim.check()
    except LeaseLost as lost:
        return f"another process took over: {lost}"
    except IcefieldError:
        return None  # nothing but work that is done twice depends on it
    return None


def _skip(planned: TableUpkeepResult, reason: str) -> TableUpkeepResult:
    return replace(planned, steps=[skip_step(step, reason) for step in planned.steps])
