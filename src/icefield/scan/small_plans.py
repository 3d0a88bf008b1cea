"""Plans of small tables that were made already, for programs that ask the same again and again.

A plan depends on the manifest list, the filter, the schema and the specs, and on manifests, which never change. The
list is known by the very table that its bytes were decoded to: after any commit, or if somebody wrote another list in
its place, that is another one, and the plan is made anew.

Plans with deletes and those of many files are not kept, so that all of it stays small. Safe in many threads.
"""

import threading
from collections import OrderedDict
from dataclasses import dataclass
from typing import Any, NamedTuple

import pyarrow as pa

from icefield.expr.bound import Bound
from icefield.model.partition import PartitionSpec
from icefield.types.schema import Schema

MOST_PLANS = 256
MOST_ROWS = 100  # of a manifest list, and of the files in a plan


class Question(NamedTuple):
    """What was asked of a manifest list."""

    manifest_list: str
    where: Bound
    schema: Schema
    specs: tuple[PartitionSpec, ...]


@dataclass(frozen=True)
class SmallPlan:
    """The answer: the files, and how the others were ruled out; `manifests` is the list that it was made from."""

    manifests: pa.Table
    files: pa.Table
    funnel: Any


class SmallPlans:
    """The plans that were asked for last."""

    def __init__(self, most: int = MOST_PLANS) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._held: OrderedDict[Question, SmallPlan | None] = OrderedDict()

    def find(self, question: Question, manifests: pa.Table) -> SmallPlan | None:
        """Find the plan that was made from this very list."""
        with self._lock:
            held = self._held.get(question)
            if held is None or held.manifests is not manifests:
                return None
            self._held.move_to_end(question)
            return held

    def keep(self, question: Question, plan: SmallPlan) -> None:
        """Keep a plan if it is small, and asked for the second time."""
        # Version 1 may name manifests one by one, and then there is no list to know them by.
        if not question.manifest_list or max(plan.manifests.num_rows, plan.files.num_rows) > MOST_ROWS:
            return
        with self._lock:
            self._held[question] = plan if question in self._held else None
            self._held.move_to_end(question)
            while len(self._held) > self._most:
                self._held.popitem(last=False)
