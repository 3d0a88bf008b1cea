"""What a run of upkeep did, or would do, as text for people and as values for programs."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from enum import StrEnum

from icefield.policy.settings import Step
from icefield.showing import ShownAsText
from icefield.upkeep.result import size_text


class Outcome(StrEnum):
    """What became of a step."""

    PLANNED = "planned"
    DONE = "done"
    NOT_DUE = "not due"
    SKIPPED = "skipped"
    FAILED = "failed"


@dataclass(frozen=True, repr=False)
class StepResult(ShownAsText):
    """One step of the upkeep of one table.

    Attributes:
        step: `convert-deletes`, `compact`, `rewrite-manifests`, `expire`, `orphans` or `sweep`.
        debt: How many times what makes the step due had come together; it is due from 1 on.
        measured: The counts behind it.
        outcome: `planned` in a dry run, `done`, `not due`, `skipped` or `failed`.
        reason: Why it was skipped, failed or stopped early; else what was done.
        bytes_read: The size of the files that were read.
        bytes_written: The size of the new files.
        bytes_marked: The size of files that were marked for deletion.
        bytes_freed: The size of files that were deleted.
        seconds: How long it took.
    """

    step: Step
    debt: float = 0.0
    measured: Mapping[str, int] = field(default_factory=dict)
    outcome: Outcome = Outcome.NOT_DUE
    reason: str | None = None
    bytes_read: int = 0
    bytes_written: int = 0
    bytes_marked: int = 0
    bytes_freed: int = 0
    seconds: float = field(default=0.0, compare=False)

    def as_dict(self) -> dict[str, object]:
        """Return plain values."""
        own = asdict(self) | {"step": str(self.step), "outcome": str(self.outcome), "debt": round(self.debt, 2)}
        return {name.replace("_", "-"): value for name, value in own.items()}

    def __str__(self) -> str:
        sizes = (
            (self.bytes_read, "read"),
            (self.bytes_written, "written"),
            (self.bytes_marked, "marked"),
            (self.bytes_freed, "freed"),
        )
        moved = ", ".join(f"{size_text(size)} {word}" for size, word in sizes if size)
        reason = self.reason or ", ".join(
            f"{count:,} {name.replace('-', ' ')}" for name, count in self.measured.items()
        )
        text = f"  {self.step:<18}{self.debt:>8,.1f}  {self.outcome}: {reason}".rstrip(": ")
        return text + (f" ({moved})" if moved else "")


@dataclass(frozen=True, repr=False)
class TableUpkeepResult(ShownAsText):
    """The upkeep of one table.

    Attributes:
        table: The name of the table.
        steps: Its steps, in the order in which they are done; none if the table could not be measured.
        error: Why it could not be measured.
        skipped: Why it was not measured.
    """

    table: str
    steps: Sequence[StepResult] = ()
    error: str | None = None
    skipped: str | None = None

    @property
    def debt(self) -> float:
        """The debt of the step that is most overdue; tables with more come first."""
        return max((step.debt for step in self.steps), default=0.0)

    @property
    def is_failed(self) -> bool:
        """Whether the table, or a step of it, failed."""
        return self.error is not None or any(step.outcome is Outcome.FAILED for step in self.steps)

    def as_dict(self) -> dict[str, object]:
        """Return plain values."""
        own = {"table": self.table, "debt": round(self.debt, 2), "error": self.error, "skipped": self.skipped}
        return own | {"steps": [step.as_dict() for step in self.steps]}

    def __str__(self) -> str:
        shown = [step for step in self.steps if step.outcome is not Outcome.NOT_DUE and not _is_off(step)]
        if self.error is not None:
            state = f"failed: {self.error}"
        elif self.skipped is not None:
            state = f"skipped: {self.skipped}"
        else:
            state = f"debt {self.debt:,.1f}" if shown else "nothing is due"
        return "\n".join([f"{self.table}: {state}", *(str(step) for step in shown)])


@dataclass(frozen=True, repr=False)
class UpkeepResult(ShownAsText):
    """What a run of upkeep did; with `dry_run`, what it would do.

    Attributes:
        tables: The tables, in the order in which they were worked on: worst debt first.
        is_dry_run: Nothing was changed.
        seconds: How long the run took.
    """

    tables: Sequence[TableUpkeepResult] = ()
    is_dry_run: bool = False
    seconds: float = field(default=0.0, compare=False)

    @property
    def is_failed(self) -> bool:
        """Whether any table failed."""
        return any(table.is_failed for table in self.tables)

    @property
    def is_due(self) -> bool:
        """Whether any step was due."""
        return any(step.outcome is not Outcome.NOT_DUE and not _is_off(step) for step in self._steps)

    @property
    def bytes_written(self) -> int:
        """The size of all new files."""
        return sum(step.bytes_written for step in self._steps)

    @property
    def bytes_freed(self) -> int:
        """The size of all files that were deleted."""
        return sum(step.bytes_freed for step in self._steps)

    def as_dict(self) -> dict[str, object]:
        """Return plain values."""
        return {
            "is-dry-run": self.is_dry_run,
            "is-failed": self.is_failed,
            "bytes-written": self.bytes_written,
            "bytes-freed": self.bytes_freed,
            "seconds": self.seconds,
            "tables": [table.as_dict() for table in self.tables],
        }

    def __str__(self) -> str:
        outcomes = [step.outcome for step in self._steps if not _is_off(step)]
        counts = [f"{outcomes.count(each):,} {each}" for each in Outcome if each in outcomes]
        moved = (
            "" if self.is_dry_run else f"; {size_text(self.bytes_written)} written, {size_text(self.bytes_freed)} freed"
        )
        noun = "table" if len(self.tables) == 1 else "tables"
        total = f"{len(self.tables):,} {noun}, steps: {', '.join(counts) or 'none'}{moved}"
        return "\n".join([*(str(table) for table in self.tables), total])

    @property
    def _steps(self) -> Sequence[StepResult]:
        return [step for table in self.tables for step in table.steps]


def _is_off(step: StepResult) -> bool:
    """Return whether the policy switched the step off, so that people need not read of it."""
    return step.outcome is Outcome.SKIPPED and step.debt == 0
