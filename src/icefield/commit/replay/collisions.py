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
        snapshots: The snapshots that changed them first, if they are known.
        keys: Some of the keys, as text.
    """

    kind: CollisionKind
    file: str
    rows: int
    snapshots: tuple[int, ...] = ()
    keys: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, object]:
        """Return plain values; ids as strings."""
        return {
            "kind": str(self.kind),
            "file": self.file,
            "rows": self.rows,
            "snapshots": [str(each) for each in self.snapshots],
            "keys": list(self.keys),
        }

    def __str__(self) -> str:
        by = f" (snapshot {', '.join(map(str, self.snapshots))})" if self.snapshots else ""
        if self.kind is CollisionKind.KEYS:
            return f"{self.rows:,} key(s) were added on both sides, such as {', '.join(self.keys)}, in {self.file}{by}"
        if self.kind is CollisionKind.FILES:
            return f"rows of {self.file} were moved or deleted, and format version 1 has no row-level deletes{by}"
        return f"{self.rows:,} row(s) of {self.file} were deleted or changed on both sides{by}"


def refuse(verb: str, collisions: Sequence[Collision], hint: str) -> ConcurrentChange:
    """Build the error of a change that collides."""
    shown = "; ".join(str(each) for each in collisions[:SHOWN])
    more = f"; and {len(collisions) - SHOWN} more" if len(collisions) > SHOWN else ""
    return ConcurrentChange(
        f"cannot {verb}: {shown}{more}", hint=f"Nothing was changed; {hint}", collisions=tuple(collisions)
    )
