"""Which side decides about rows that both sides removed or changed: one for all, or one for each file that collides.

Raises InvalidInput.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from icefield.errors import InvalidInput


class Decider(StrEnum):
    """The side that decides."""

    OURS = "ours"
    THEIRS = "theirs"


@dataclass(frozen=True)
class Decision:
    """The side that decides. about_all: None if rows collide. by_file: about the rows of some files of the base."""

    about_all: Decider | None = None
    by_file: Mapping[str, Decider] = field(default_factory=dict)

    def of(self, path: str) -> Decider | None:
        """Return the side that decides about the rows of a file; None if they collide."""
        return self.by_file.get(path, self.about_all)

    @property
    def is_for_ours(self) -> bool:
        """Ours decides about some rows."""
        return Decider.OURS in (self.about_all, *self.by_file.values())

    def __bool__(self) -> bool:
        return self.about_all is not None or bool(self.by_file)

    def check_files(self, paths: Iterable[str]) -> None:
        """Refuse a decision about a file without rows that collide."""
        if unknown := self.by_file.keys() - set(paths):
            raise InvalidInput(
                f"on_collision names {min(unknown)}, of which no rows collide",
                hint="Name files of the report: error.collisions",
            )


NOT_DECIDED = Decision()


def parse_decision(given: Any) -> Decision:
    """Return the decision of a caller: a side, a side for each file, or None if rows that both changed collide."""
    if isinstance(given, Mapping):
        return Decision(by_file={path: _side(side) for path, side in given.items()})
    return Decision(None if given is None else _side(given))


def _side(name: object) -> Decider:
    if name not in tuple(Decider):
        raise InvalidInput(f"on_collision is 'ours' or 'theirs', not {name!r}")
    return Decider(str(name))
