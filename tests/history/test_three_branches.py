"""Random histories of three branches and of tags, published in every direction and rebased, against a causal model.

A write gives keys a new value, and each branch remembers which values of a key came before it. A branch takes the value
of another one if it is later than its own; two values of which neither is later than the other collide. A key that both
deleted may collide, because without other changes of the sides it does not.
"""

import random
from dataclasses import dataclass, field, replace

import pytest
from tests.effort import seeds
from tests.history.evolving import ID, PART, VALUE, arrow, names_of, redefine, rows_of

import icefield
from icefield.errors import ConcurrentChange
from icefield.table.table import Table

SEEDS = seeds(30, 1000)
STEPS = 16
CHANGES = (
    "append",
    "delete",
    "update",
    "upsert",
    "equality",
    "compact",
    "sort",
    "manifests",
    "tag",
    "branch",
    "redefine",
)
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


def merged(ours: Values, theirs: Values) -> tuple[Values, set[int], set[int]]:
    """Return both together, the keys that collide, and those that may collide."""
    result, both, gone = dict(ours), set[int](), set[int]()
    for key, value in theirs.items():
        own = ours.get(key)
        if own is None or own.number in value.seen:
            result[key] = value
        elif own.text is None and value.text is None:
            result[key] = replace(own, seen=own.seen | value.seen | {value.number})
            gone |= {key} if value.number not in own.seen | {own.number} else set()
        elif value.number != own.number and value.number not in own.seen:
            both.add(key)
    return result, both, gone


@dataclass
class Histories:
    """A table with three branches, and the values of each branch and tag."""

    random: random.Random
    table: Table
    known: dict[str, Values] = field(default_factory=dict)
    writes: int = 0
    branches: tuple[str, ...] = ("main", "b", "c")
    unordered: set[int] = field(default_factory=set)  # keys of equality upserts, which replace any row

    def run(self) -> None:
        for _ in range(STEPS):
            ref, what = self.random.choice(self.branches), self.random.choice([*CHANGES, *MERGES])
            if what in MERGES:
                self.merge(ref, what)
            else:
                self.change(ref, what)

    def change(self, ref: str, what: str) -> None:
        table, values = self.table.at(ref), self.known[ref]
        names, there = names_of(table), sorted(live(values))
        some = self.random.sample(there, min(len(there), self.random.randint(1, 2)))
        where = f"id in ({', '.join(map(str, some)) or -1})"
        self.writes += 1
        text: str | None = f"{ref} {self.writes}"
        if what == "append":
            some = [1000 + self.writes]
            table.append(arrow({some[0]: f"{text}"}, names))
        elif what == "delete":
            table.delete(where=where)
            text = None
        elif what == "update":
            table.update({names[VALUE]: f"'{text}'"}, where=where)
        elif what == "upsert":
            table.upsert(arrow(dict.fromkeys(some, f"{text}"), names), on=["id"])
        elif what == "equality" and some and table.metadata.format_version > 1:
            table.upsert(arrow(dict.fromkeys(some, f"{text}"), names), on=[names[ID], names[PART]], mode="equality")
            self.unordered.update(some)
        else:
            some = []
            self.keep_rows(table, what)
        for key in some:
            before = values.get(key)
            seen = frozenset() if before is None else before.seen | {before.number}
            values[key] = Value(text, self.writes, seen)
        assert rows_of(table) == live(values)

    def keep_rows(self, table: Table, what: str) -> None:
        if what == "tag":
            self.table.create_tag(f"tag {self.writes}", at=table._ref)
            self.known[f"tag {self.writes}"] = dict(self.known[table._ref])
        elif what == "branch":
            name = f"{table._ref} {self.writes}"
            self.table.create_branch(name, at=table._ref)
            self.known[name] = dict(self.known[table._ref])
            self.branches = (*self.branches, name)
        elif what == "redefine":
            redefine(table, self.random, self.writes)
        elif what == "manifests":
            table.rewrite_manifests()
        elif what in ("compact", "sort"):
            table.compact(order_by=[names_of(table)[VALUE]] if what == "sort" else ())

    def merge(self, ref: str, what: str) -> None:
        if what == "rebase" and ref == "main":
            return
        source = self.random.choice([other for other in self.known if other != ref])
        expected, both, gone = merged(self.known[ref], self.known[source])
        table = self.table.at(ref)
        refused = None
        try:
            table.publish(source) if what == "publish" else table.rebase(source)
        except ConcurrentChange as error:
            refused = error
        unordered = {key for key in self.unordered if self.known[ref].get(key) != self.known[source].get(key)}
        if refused is not None:
            assert both or gone or unordered or table.metadata.format_version == 1, (
                f"{refused}, although nothing collides"
            )
            assert rows_of(table) == live(self.known[ref])
            return
        assert both <= self.unordered, f"{ref}: {what} {source} succeeded, although {both} collide"
        found = rows_of(table)
        for key in unordered:  # the side that an equality upsert, or the order of the two, has chosen
            sides = [side[key] for side in (self.known[ref], self.known[source]) if key in side]
            assert found.get(key) in [side.text for side in sides]
            self.writes += 1
            seen = frozenset().union(*(side.seen | {side.number} for side in sides))
            expected[key] = Value(found.get(key), self.writes, seen)
        assert found == live(expected)
        self.known[ref] = expected


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
