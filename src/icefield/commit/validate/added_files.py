"""Refuse to take files into a table that has them: their rows would be counted twice.

Asked on every base, so that of two who take in the same file one lands. Raises AlreadyExists.
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
    """Changes nothing, and fails on a table whose branch has one of the files."""

    locations: frozenset[str]
    ref: str

    def propose(self, base: TableMetadata, context: WriteContext) -> ProposedChange:
        planned = plan_scan(context.store, base, resolve_version(base, self.ref), TRUE)
        known = set(planned.files.column("file_path").to_pylist())
        if taken := sorted(known & self.locations):
            raise already_there(taken)
        return ProposedChange([])

    def reusable_files(self) -> Sequence[str]:
        return ()


def already_there(locations: Sequence[str]) -> AlreadyExists:
    """Return the error for files that would be in the table twice."""
    return AlreadyExists(
        f"{len(locations)} of the files would be in the table twice, such as {locations[0]}",
        hint="Its rows would be counted twice; leave it out",
    )
