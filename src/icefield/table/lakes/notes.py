"""Who changes a lake, and why: notes in the summaries of all snapshots that a handle of the lake makes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Self, TypeVar

from icefield.arguments import check_arguments
from icefield.deferred import deferred_imports
from icefield.model.snapshot import note_keys

with deferred_imports(__name__):
    from icefield.backend import Backend
    from icefield.engine.rows import SessionChoice

L = TypeVar("L", bound="LakeNotes")


@check_arguments
class LakeNotes:
    """The part of a lake that says who changes it, and why."""

    _sessions: SessionChoice
    backend: Backend
    warehouse: str
    opener: Callable[[], Self] | None

    def __init__(self, backend: Backend, warehouse: str) -> None:
        self.backend = backend
        self.warehouse = warehouse

    def noting(self, *, message: str | None = None, author: str | None = None) -> Self:
        """Return the same lake; the snapshots that are made through it say why, and by whom.

        This holds for tables, transactions, SQL, branches of several tables and upkeep. What a table's own handle notes
        comes before. Closing one of the two lakes closes both.

        Args:
            message: Why: `icefield.message` in the summary.
            author: Who: `icefield.author`.
        """
        given = note_keys(message=message, author=author)
        noted = type(self)(replace(self.backend, notes={**self.backend.notes, **given}), self.warehouse)
        noted._sessions = self._sessions  # noqa: SLF001
        noted.opener = None if self.opener is None else partial(_open_noted, self.opener, given)
        return noted


def _open_noted(opener: Callable[[], L], notes: Mapping[str, str]) -> L:
    """Open a lake in another process, with the same notes."""
    lake = opener()
    lake.backend = replace(lake.backend, notes={**lake.backend.notes, **notes})
    return lake
