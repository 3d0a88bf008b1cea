"""Why one file is read or pruned, as values, as lines and as JSON; `icefield.explain.explain_file` determines it."""

from dataclasses import dataclass
from enum import StrEnum

from icefield.explain.report_tree import Outline
from icefield.expr.bind.bound import TRUE
from icefield.expr.render.describe import describe
from icefield.parquet.read.task import DeleteFile
from icefield.showing import ShownAsText


class Stage(StrEnum):
    """A step of planning."""

    MANIFEST = "manifest"
    PARTITION = "partition"
    STATISTICS = "statistics"


class Finding(StrEnum):
    """The result of a pass for one condition."""

    NONE = "no row can match"
    SOME = "rows may match"
    ALL = "every row matches"
    UNKNOWN = "nothing is known"


@dataclass(frozen=True)
class Evaluation:
    """One pass for one condition: what it evaluated, on which values, with which result."""

    stage: Stage
    condition: str
    values: str
    finding: Finding


@dataclass(frozen=True)
class Condition:
    """One conjunct of the filter, and the result of each pass."""

    text: str
    evaluations: tuple[Evaluation, ...]


@dataclass(frozen=True, repr=False)
class FileReason(ShownAsText):
    """Why a data file is read or pruned.

    Attributes:
        conditions: The conditions of the filter, and what each pass of planning found for them.
        ruled_out_by: The first pass that pruned the file; None for a file that is read.
        residual: What remains of the filter for the rows of the file.
        deletes: The delete files that apply to it.
    """

    location: str
    manifest: str
    partition: str
    spec_id: int
    record_count: int
    file_size_in_bytes: int
    conditions: tuple[Condition, ...]
    ruled_out_by: Stage | None
    residual: str
    deletes: tuple[DeleteFile, ...]

    @property
    def is_read(self) -> bool:
        """Return whether the scan reads the file."""
        return self.ruled_out_by is None

    @property
    def outcome(self) -> str:
        """Describe the outcome in a sentence."""
        if self.ruled_out_by is None:
            whole = self.residual == describe(TRUE)
            return "read: every row matches" if whole else f"read: rows are filtered by {self.residual}"
        seen = _SEEN[self.ruled_out_by]
        culprits = [c.text for c in self.conditions for j in c.evaluations if self._prunes(j)]
        if not culprits:
            return "not read: no condition rules it out alone, but all that was seen together does"
        return f"not read: by {seen} no row can match {' nor '.join(culprits)}"

    def as_dict(self) -> dict[str, object]:
        """Return plain values, for JSON."""
        return {
            "file-path": self.location,
            "manifest-path": self.manifest,
            "partition": self.partition,
            "spec-id": self.spec_id,
            "record-count": self.record_count,
            "file-size-in-bytes": self.file_size_in_bytes,
            "is-read": self.is_read,
            "ruled-out-by": self.ruled_out_by,
            "outcome": self.outcome,
            "residual": self.residual if self.is_read else None,
            "conditions": [_condition_values(condition) for condition in self.conditions],
            "deletes": [{"kind": d.kind, "file-path": d.location} for d in self.deletes],
        }

    def outline(self) -> Outline:
        """Return the reason as nested lines."""
        conditions = (Outline(c.text, tuple(Outline(_line(j)) for j in c.evaluations)) for c in self.conditions)
        where = f"partition {self.partition} of spec {self.spec_id}" if self.partition else "no partition"
        deletes = Outline(
            "deletes that apply: " + ("" if self.deletes else "none"),
            tuple(Outline(f"{d.kind} in {d.location}") for d in self.deletes),
        )
        parts = (
            Outline(self.outcome),
            Outline(f"{self.record_count:,} rows, {self.file_size_in_bytes:,} bytes, {where}"),
            Outline(f"listed in {self.manifest}"),
            *conditions,
            deletes,
        )
        return Outline(self.location, parts)

    def __str__(self) -> str:
        return str(self.outline())

    def _prunes(self, evaluation: Evaluation) -> bool:
        return evaluation.stage is self.ruled_out_by and evaluation.finding is Finding.NONE


_SEEN = {
    Stage.MANIFEST: "the summary of its manifest",
    Stage.PARTITION: "its partition",
    Stage.STATISTICS: "its statistics",
}


def _line(evaluation: Evaluation) -> str:
    values = f": {evaluation.values}" if evaluation.values else ""
    is_projected = evaluation.stage is not Stage.STATISTICS and evaluation.values
    condition = f" for {evaluation.condition}" if is_projected else ""
    return f"by {evaluation.stage}, {evaluation.finding}{condition}{values}"


def _condition_values(condition: Condition) -> dict[str, object]:
    passes = [
        {"pass": e.stage, "condition": e.condition, "values": e.values or None, "finding": e.finding}
        for e in condition.evaluations
    ]
    return {"condition": condition.text, "passes": passes}
