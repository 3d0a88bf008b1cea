"""Checks of a branch before it is published: filters with names, which must match no row.

Checks are properties of the table, `icefield.check.NAME` = a filter, or given by the caller. They are run on one
snapshot of the branch, and only that snapshot is published.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from icefield.errors import CheckFailed, InvalidInput
from icefield.model.metadata import TableMetadata

CHECK_PREFIX = "icefield.check."
SHOWN_ROWS = 5


@dataclass(frozen=True)
class CheckFailure:
    """A check that rows of a branch break.

    Attributes:
        name: The check.
        where: Its filter.
        rows: How many rows match it.
        sample: Some of them.
    """

    name: str
    where: str
    rows: int
    sample: Sequence[Mapping[str, object]]

    def __str__(self) -> str:
        return f"{self.name} ({self.where}): {self.rows:,} row(s)"


# Returns how many rows of the branch match a filter, and some of them.
CountMatches = Callable[[str], tuple[int, Sequence[Mapping[str, object]]]]


def find_checks(metadata: TableMetadata, given: Mapping[str, str] | None) -> dict[str, str]:
    """Return the checks of a table and those of the caller, by name."""
    kept = {
        key.removeprefix(CHECK_PREFIX): where
        for key, where in metadata.properties.items()
        if key.startswith(CHECK_PREFIX)
    }
    if both := sorted(kept.keys() & (given or {}).keys()):
        raise InvalidInput(f"the table has a check {both[0]!r} already", hint="Give it another name")
    return {**kept, **(given or {})}


def run_checks(branch: str, checks: Mapping[str, str], count: CountMatches) -> None:
    """Run all checks. Raises CheckFailed, which says which rows break which."""
    failures = []
    for name, where in checks.items():
        rows, sample = count(where)
        if rows:
            failures.append(CheckFailure(name, where, rows, sample))
    if failures:
        shown = "; ".join(map(str, failures))
        raise CheckFailed(
            f"cannot publish {branch!r}: it breaks {len(failures)} of {len(checks)} check(s): {shown}",
            hint="Nothing was published; correct the rows on the branch, and publish it again",
            failures=failures,
        )
