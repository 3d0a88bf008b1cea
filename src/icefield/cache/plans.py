"""What planning small tables came to, for programs that ask the same tables again and again.

Plans are kept, for who asks the same again; and the files that plans chose from, for who asks something else. Both
depend on the manifest list, the schema and the specs, and on manifests, which never change. The list is known by the
very value that its bytes were decoded to: after any commit, or if somebody wrote another list in its place, that is
another one, and the plan is made again.

What has deletes or many files is not kept, so that all of it stays small. Safe in many threads.
"""

import threading
from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar

import pyarrow.compute as pc

from icefield.codec.manifest.rows import Manifests
from icefield.expr.bind.bound import Bound
from icefield.model.partition import PartitionSpec
from icefield.types.schema import Schema

MOST_PLANS = 256
MOST_ROWS = 100  # of a manifest list, and of the files in a plan or before a filter

Answer = TypeVar("Answer")


class Question(NamedTuple):
    """What was asked of a manifest list."""

    manifest_list: str
    where: Bound
    schema: Schema
    specs: tuple[PartitionSpec, ...]


class Choice(NamedTuple):
    """What a filter chooses from: the files of some manifests, in the shape in which some columns are judged.

    opened: a byte for each live manifest of the list.
    """

    manifest_list: str
    opened: bytes
    judged: tuple[int, ...]
    schema: Schema
    specs: tuple[PartitionSpec, ...]


@dataclass(frozen=True)
class SmallPlan:
    """A plan: the files, and how the others were ruled out."""

    files: Any
    metrics: Any


@dataclass(frozen=True)
class _Held(Generic[Answer]):
    listed: object
    answer: Answer


class SmallAnswers(Generic[Answer]):
    """The answers that were asked for last, to questions that name a manifest list."""

    def __init__(self, most: int = MOST_PLANS) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._held: OrderedDict[Hashable, _Held[Answer] | None] = OrderedDict()

    def find(self, question: Hashable, listed: object) -> Answer | None:
        """Find the answer that was made from this very list."""
        with self._lock:
            held = self._held.get(question)
            if held is None or held.listed is not listed:
                return None
            self._held.move_to_end(question)
            return held.answer

    def note(self, question: Hashable) -> bool:
        """Note that something is asked; return whether it was before, so that it is time to keep the answer."""
        with self._lock:
            known = question in self._held
            if not known:
                self._put(question, None)
            return known

    def keep(self, question: Hashable, listed: object, answer: Answer) -> None:
        """Keep an answer that was made from a list."""
        with self._lock:
            self._held.pop(question, None)
            self._put(question, _Held(listed, answer))

    def _put(self, question: Hashable, held: _Held[Answer] | None) -> None:
        """Put something last."""
        self._held[question] = held
        while len(self._held) > self._most:
            self._held.popitem(last=False)


def lists_few_files(manifests: Manifests) -> bool:
    """Return whether manifests are small, by their counts."""
    counts = [manifests[f"{kind}_files_count"] for kind in ("added", "existing", "deleted")]
    if any(column.null_count for column in counts):
        return False
    return sum(pc.sum(column).as_py() or 0 for column in counts) <= MOST_ROWS
