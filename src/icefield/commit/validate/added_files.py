"""Reject files that are already in the table: their rows would be duplicated.

Checked on every base, so that only one of two writers can add the same file. Raises AlreadyExists.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from icefield.commit.action import ProposedChange, WriteContext
from icefield.errors import AlreadyExists
from icefield.expr.bind.bound import TRUE
from icefield.model.metadata import TableMetadata
from icefield.plan.plan import plan_scan
from icefield.plan.versions import resolve_version


@dataclass(frozen=True)
class RequireNewFiles:
    """Changes nothing, and fails if the branch already has one of the files."""

    locations: frozenset[str]
    ref: str

    def propose(self, base: TableMetadata, context: WriteContext) -> ProposedChange:
        planned = plan_scan(context.reading, base, resolve_version(base, self.ref), TRUE)
        if taken := sorted(planned.files.paths & self.locations):
            raise already_there(taken)
        return ProposedChange([])

    def reusable_files(self) -> Sequence[str]:
        return ()


def already_there(locations: Sequence[str]) -> AlreadyExists:
    """Build the error for files that are already in the table."""
    return AlreadyExists(
        f"{len(locations)} of the files are already in the table, such as {locations[0]}",
        hint="Their rows would be duplicated; omit these files",
    )
