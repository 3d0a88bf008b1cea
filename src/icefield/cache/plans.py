"""Cached plans of small tables, for programs that scan the same tables repeatedly.

Both plans and unpruned files are cached: a plan for the same filter, the unpruned files for other filters. Both depend
on the manifest list, the schema and the specs, and on manifests, which never change. The list is identified by the
object that its bytes were decoded to: after any commit, or if the list was overwritten, that is another object, and
the table is planned again.

Plans with deletes or many files are not cached, so that the cache stays small. Thread-safe.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar

from icefield.deferred import deferred_imports

with deferred_imports(__name__):
    import pyarrow.compute as pc

    from icefield.codec.manifest.rows import Manifests
    from icefield.expr.bind.bound import Bound
    from icefield.model.partition import PartitionSpec
    from icefield.storage.process_lock import ProcessLock
    from icefield.types.schema import Schema

MOST_PLANS = 256
MOST_ROWS = 100  # of a manifest list, and of the files in a plan or before a filter

Answer = TypeVar("Answer")


class Question(NamedTuple):
    """What identifies a plan of a manifest list."""

    manifest_list: str
    where: Bound
    schema: Schema
    specs: tuple[PartitionSpec, ...]


class Choice(NamedTuple):
    """What identifies unpruned files: those of some manifests, with the columns that filters are evaluated on.

    opened: a byte for each live manifest of the list.
    """

    manifest_list: str
    opened: bytes
    judged: tuple[int, ...]
    schema: Schema
    specs: tuple[PartitionSpec, ...]


@dataclass(frozen=True)
class SmallPlan:
    """A plan: its files, and how the others were pruned."""

    files: Any
    metrics: Any


@dataclass(frozen=True)
class _Held(Generic[Answer]):
    listed: object
    answer: Answer


class SmallAnswers(Generic[Answer]):
    """The most recently used results, by keys that name a manifest list."""

    def __init__(self, most: int = MOST_PLANS) -> None:
        self._most = most
        self._lock = ProcessLock()
        self._held: OrderedDict[Hashable, _Held[Answer] | None] = OrderedDict()

    def find(self, question: Hashable, listed: object) -> Answer | None:
        """Find the result that was computed from this list object."""
        with self._lock:
            held = self._held.get(question)
            if held is None or held.listed is not listed:
                return None
            self._held.move_to_end(question)
            return held.answer

    def note(self, question: Hashable) -> bool:
        """Record that a result is needed; return whether it was needed before, so that it should be cached."""
        with self._lock:
            known = question in self._held
            if not known:
                self._put(question, None)
            return known

    def keep(self, question: Hashable, listed: object, answer: Answer) -> None:
        """Cache a result that was computed from a list."""
        with self._lock:
            self._held.pop(question, None)
            self._put(question, _Held(listed, answer))

    def _put(self, question: Hashable, held: _Held[Answer] | None) -> None:
        """Mark a key as the most recently used."""
        self._held[question] = held
        while len(self._held) > self._most:
            self._held.popitem(last=False)


def lists_few_files(manifests: Manifests) -> bool:
    """Return whether manifests have few files, by their counts."""
    counts = [manifests[f"{kind}_files_count"] for kind in ("added", "existing", "deleted")]
    if any(column.null_count for column in counts):
        return False
    return sum(pc.sum(column).as_py() or 0 for column in counts) <= MOST_ROWS
