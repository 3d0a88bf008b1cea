"""Random histories of three branches and of tags, published in every direction and rebased, against a causal model.

A write gives keys a new value, and each branch remembers which values of a key came before it. A branch takes the value
of another one if it is later than its own; two values of which neither is later than the other collide.
"""

import random
from dataclasses import dataclass, field, replace

import pytest
from tests.effort import seeds
from tests.history.two_branches import arrow

import icefield
from icefield.errors import ConcurrentChange
from icefield.table.table import Table

SEEDS = seeds(30, 1000)
STEPS = 16
CHANGES = ("append", "delete", "update", "upsert", "compact", "sort", "manifests", "tag")
MERGES = ("publish", "publish", "publish", "publish", "rebase")


@dataclass(frozen=True)
class Value:
    """The value of a key: None if it was deleted. seen: the numbers of the writes that it is later than."""

    text: str | None
    number: int
    seen: frozenset[int] = frozenset()


Values = dict[int, Value]


def live(values: Values) -> dict[int, str]:
    return {key: value.text for key, value in values.items() if value.text is not None}


def merged(ours: Values, theirs: Values) -> tuple[Values, set[int]]:
    """Return both together, and the keys that collide."""
    result, both = dict(ours), set[int]()
    for key, value in theirs.items():
        own = ours.get(key)
        if own is None or own.number in value.seen:
            result[key] = value
        elif own.text is None and value.text is None:
            result[key] = replace(own, seen=own.seen | value.seen | {value.number})
        elif value.number != own.number and value.number not in own.seen:
            both.add(key)
    return result, both


@dataclass
class Histories:
    """A table with three branches, and the values of each branch and tag."""

    random: random.Random
    table: Table
    known: dict[str, Values] = field(default_factory=dict)
    writes: int = 0
    branches: tuple[str, ...] = ("main", "b", "c")

    def run(self) -> None:
        for _ in range(STEPS):
            ref, what = self.random.choice(self.branches), self.random.choice([*CHANGES, *MERGES])
            if what in MERGES:
                self.merge(ref, what)
            else:
                self.change(ref, what)

    def change(self, ref: str, what: str) -> None:
        table, values = self.table.at(ref), self.known[ref]
        there = sorted(live(values))
        some = self.random.sample(there, min(len(there), self.random.randint(1, 2)))
        where = f"id in ({', '.join(map(str, some)) or -1})"
        self.writes += 1
        text: str | None = f"{ref} {self.writes}"
        if what == "append":
            some = [1000 + self.writes]
            table.append(arrow({some[0]: f"{text}"}))
        elif what == "delete":
            table.delete(where=where)
            text = None
        elif what == "update":
            table.update({"value": f"'{text}'"}, where=where)
        elif what == "upsert":
            table.upsert(arrow(dict.fromkeys(some, f"{text}")), on=["id"])
        else:
            some = []
            self.keep_rows(table, what)
        for key in some:
            before = values.get(key)
            seen = frozenset() if before is None else before.seen | {before.number}
            values[key] = Value(text, self.writes, seen)
        assert self.read(ref) == live(values)

    def keep_rows(self, table: Table, what: str) -> None:
        if what == "tag":
            self.table.create_tag(f"tag {self.writes}", at=table._ref)
            self.known[f"tag {self.writes}"] = dict(self.known[table._ref])
        elif what == "manifests":
            table.rewrite_manifests()
        else:
            table.compact(order_by=["value"] if what == "sort" else ())

    def merge(self, ref: str, what: str) -> None:
        if what == "rebase" and ref == "main":
            return
        source = self.random.choice([other for other in self.known if other != ref])
        expected, both = merged(self.known[ref], self.known[source])
        table = self.table.at(ref)
        refused = None
        try:
            table.publish(source) if what == "publish" else table.rebase(source)
        except ConcurrentChange as error:
            refused = error
        if refused is not None:
            assert both or table.metadata.format_version == 1, f"{refused}, although nothing collides"
            assert self.read(ref) == live(self.known[ref])
            return
        assert not both, f"{ref}: {what} {source} succeeded, although {both} collide"
        assert self.read(ref) == live(expected)
        self.known[ref] = expected

    def read(self, ref: str) -> dict[int, str]:
        found = self.table.at(ref).scan().to_arrow().read_all().to_pylist()
        assert len({row["id"] for row in found}) == len(found), "a row is there twice"
        return {row["id"]: row["value"] for row in found}


def build(seed: int) -> Histories:
    chosen = random.Random(seed)
    version, mode = chosen.choice([1, 2, 2, 3, 3]), chosen.choice(["copy-on-write", "merge-on-read"])
    table = icefield.connect("memory:").create_table(
        "t.t",
        "id long, part int, value string",
        format_version=version,
        properties={f"write.{verb}.mode": mode for verb in ("delete", "update", "merge")} if version > 1 else {},
        partition_by=chosen.choice([[], ["part"]]),
    )
    for keys in (range(4), range(4, 8)):
        table.append(arrow(dict.fromkeys(keys, "old")))
    histories = Histories(chosen, table)
    for branch in histories.branches:
        if branch != "main":
            table.create_branch(branch)
        histories.known[branch] = {key: Value("old", 0) for key in range(8)}
    return histories


@pytest.mark.parametrize("seed", SEEDS)
def test_three_branches_have_the_rows_of_the_model(seed: int) -> None:
    histories = build(seed)
    histories.run()
    assert not [f for f in histories.table.fsck().findings if f.check != "dangling-deletes"]
