"""What two sides changed both: the report of a change that cannot be proposed again."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from icefield.errors import ConcurrentChange

SHOWN = 3


class CollisionKind(StrEnum):
    """What collides."""

    ROWS = "rows"  # rows of a file that both sides deleted or changed
    KEYS = "keys"  # rows with the same identifier that both sides added
    FILES = "files"  # files that cannot be changed row by row


@dataclass(frozen=True)
class Collision:
    """One thing that both sides changed.

    Attributes:
        kind: What it is: `rows`, `keys` or `files`.
        file: The data file; of keys, the one that the other side added.
        rows: How many rows of the file.
        snapshots: The snapshots that changed or added them first, if they are known.
        keys: Some of the keys, as text; in a table without identifier fields the whole rows.
        our_columns: The columns of the rows that the branch to change has changed.
        their_columns: Those that the other side has changed. Both are known of rows that have row ids or identifier
            fields, and empty if a side has deleted the rows.
    """

    kind: CollisionKind
    file: str
    rows: int
    snapshots: tuple[int, ...] = ()
    keys: tuple[str, ...] = ()
    our_columns: tuple[str, ...] = ()
    their_columns: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, object]:
        """Return plain values; ids as strings."""
        return {
            "kind": str(self.kind),
            "file": self.file,
            "rows": self.rows,
            "snapshots": [str(each) for each in self.snapshots],
            "keys": list(self.keys),
            "columns": {"ours": list(self.our_columns), "theirs": list(self.their_columns)},
        }

    def __str__(self) -> str:
        by = f" (snapshot {', '.join(map(str, self.snapshots))})" if self.snapshots else ""
        if self.kind is CollisionKind.KEYS:
            return f"{self.rows:,} key(s) were added on both sides, such as {', '.join(self.keys)}, in {self.file}{by}"
        if self.kind is CollisionKind.FILES:
            return f"rows of {self.file} were moved or deleted, and format version 1 has no row-level deletes{by}"
        keys = f", such as {'; '.join(self.keys)}," if self.keys else ""
        sides = {"ours": self.our_columns, "theirs": self.their_columns}
        changed = "; ".join(f"{side}: {', '.join(names)}" for side, names in sides.items() if names)
        columns = f" ({changed})" if changed else ""
        return f"{self.rows:,} row(s) of {self.file}{keys} were deleted or changed on both sides{columns}{by}"


def refuse(verb: str, collisions: Sequence[Collision], hint: str) -> ConcurrentChange:
    """Build the error of a change that collides."""
    shown = "; ".join(str(each) for each in collisions[:SHOWN])
    more = f"; and {len(collisions) - SHOWN} more" if len(collisions) > SHOWN else ""
    return ConcurrentChange(
        f"cannot {verb}: {shown}{more}", hint=f"Nothing was changed; {hint}", collisions=tuple(collisions)
    )
