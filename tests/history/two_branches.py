"""A table with two branches that changes at random, and a model of its rows.

The model is a dictionary from key to value for each version. A three-way comparison of dictionaries is the oracle: a
key that one side changed has the value of that side; a key that both changed differently must be reported.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass, field

from tests.history.evolving import ID, PART, VALUE, arrow, names_of, redefine, rows_of

import icefield
from icefield.commit.replay.collisions import CollisionKind
from icefield.errors import ConcurrentChange
from icefield.table.table import Table

Rows = dict[int, str]
CHANGES = ("append", "delete", "update", "upsert", "equality", "compact", "deletes", "sort", "redefine")


def three_way(base: Rows, theirs: Rows, ours: Rows) -> tuple[Rows, set[int]]:
    """Return `ours` with the changes of `theirs`, and the keys that both changed."""
    result, both = dict(ours), set[int]()
    for key in base.keys() | theirs.keys() | ours.keys():
        was, now, other = base.get(key), theirs.get(key), ours.get(key)
        if now == was:
            continue
        if other != was:
            both.add(key)
        elif now is None:
            del result[key]
        else:
            result[key] = now
    return result, both


class KeyAddedTwice(Exception):
    """Both sides added a row of one key, which ends a history of keys."""


@dataclass
class History:
    """A table with two branches, and the rows of every snapshot."""

    random: random.Random
    table: Table
    known: dict[int, Rows] = field(default_factory=dict)
    fresh: int = 1000
    redefines: bool = False

    def handle(self, ref: str) -> Table:
        return self.table.at(ref)

    def rows(self, ref: str) -> Rows:
        return self.known[self.table.metadata.refs[ref].snapshot_id]

    def note(self, ref: str, rows: Rows) -> None:
        assert rows_of(self.handle(ref)) == rows
        self.known[self.table.metadata.refs[ref].snapshot_id] = rows

    def change(self, ref: str) -> None:
        """Make one change of a branch, and remember its rows."""
        table, rows = self.handle(ref), dict(self.rows(ref))
        some = self.random.sample(sorted(rows), min(len(rows), self.random.randint(1, 2)))
        what = self.random.choice(CHANGES if self.redefines else CHANGES[:-1])
        self.fresh += 2
        new = {self.fresh: f"{ref} {self.fresh}", self.fresh + 1: f"{ref} {self.fresh + 1}"}
        changed = {key: f"{ref} {self.fresh} of {key}" for key in some}
        listed = ", ".join(map(str, some)) or "-1"
        version, names = table.metadata.format_version, names_of(table)
        if what == "redefine":
            redefine(table, self.random, self.fresh)
        elif what == "append":
            table.append(arrow(new, names))
            rows |= new
        elif what == "delete":
            table.delete(where=f"id in ({listed})")
            rows = {key: value for key, value in rows.items() if key not in some}
        elif what == "update":
            table.update(
                {names[VALUE]: f"concat('{ref} {self.fresh} of ', cast(id as string))"}, where=f"id in ({listed})"
            )
            rows |= changed
        elif what == "upsert" or (what == "equality" and version > 1):
            source = arrow({**changed, **new}, names)
            if what == "equality":
                table.upsert(source, on=[names[ID], names[PART]], mode="equality")
            else:
                table.upsert(source, on=["id"])
            rows |= changed | new
        elif what == "compact":
            table.compact()
        elif what == "sort":
            table.compact(order_by=[names[VALUE]])
        elif what == "deletes" and version > 1:
            table.convert_equality_deletes()
        self.note(ref, rows)

    def merge(self, ref: str, base: Rows, theirs: Rows, run: Callable[[], object]) -> bool:
        """Run something that applies a change to a branch; compare with the oracle. Return whether it succeeded."""
        ours = self.rows(ref)
        expected, both = three_way(base, theirs, ours)
        refused = None
        try:
            run()
        except ConcurrentChange as error:
            refused = error
        listed = [row["id"] for row in self.handle(ref).scan(select=["id"]).to_arrow().read_all().to_pylist()]
        if twice := {key for key in listed if listed.count(key) > 1}:
            # The table has no identifiers: an equality upsert and a revert may both have added a row of a key.
            assert twice <= both
            raise KeyAddedTwice
        found = rows_of(self.handle(ref))
        if refused is not None:
            is_certain = any(each.kind != CollisionKind.FILES for each in refused.collisions)
            assert both or not is_certain, f"{refused}, although no key was changed on both sides"
            assert refused.collisions
            assert found == ours
            return False
        # Rows that both sides deleted, and equality deletes, whose order decides, do not collide.
        certain = found.keys() | expected.keys() - both
        assert {k: found.get(k) for k in certain - both} == {k: expected.get(k) for k in certain - both}
        assert all(found.get(key) in (ours.get(key), theirs.get(key)) for key in both)
        self.known[self.table.metadata.refs[ref].snapshot_id] = found
        return True


def build(seed: int, *, redefines: bool = False) -> History:
    """Start a history. redefines: columns, the partition spec and the format version change, too."""
    chosen = random.Random(seed)
    version = chosen.choice([1, 2, 2, 3, 3])
    mode = chosen.choice(["copy-on-write", "merge-on-read"])
    properties = {f"write.{verb}.mode": mode for verb in ("delete", "update", "merge")} if version > 1 else {}
    table = icefield.connect("memory:").create_table(
        "t.t",
        "id long, part int, value string",
        format_version=version,
        properties=properties,
        partition_by=chosen.choice([[], ["part"]]),
    )
    history = History(chosen, table, redefines=redefines)
    table.append(arrow(dict.fromkeys(range(4), "old")))
    history.note("main", dict.fromkeys(range(4), "old"))
    table.append(arrow(dict.fromkeys(range(4, 8), "old")))
    table.create_branch("b")
    history.note("main", dict.fromkeys(range(8), "old"))
    return history
