"""What the tables should be: a state, and what each kind of change makes of it.

A change is known by what it does to the state that it lands on, so the model is the landed changes in the order of
their swaps.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any

from tests.sim.reading import Row, Rows

from icefield.catalog.catalog import PointerSwap
from icefield.errors import IcefieldError
from icefield.model.snapshot import MAIN


class Violation(AssertionError):
    """Something happened that must never happen."""


@dataclass(frozen=True)
class State:
    """One table at one moment. refs: what each name leads to, None for a main without snapshots."""

    refs: Mapping[str, int | None]
    contents: Mapping[int, Rows]
    parents: Mapping[int, int | None]
    columns: tuple[str, ...]
    properties: Mapping[str, str]
    merged: Mapping[int, int] = field(default_factory=dict)  # the branches that snapshots were published from
    picked: Mapping[int, int] = field(default_factory=dict)  # what snapshots are cherry-picks of

    def rows(self, ref: str = MAIN) -> Rows:
        """Return the rows at a ref."""
        head = self.refs.get(ref)
        return () if head is None else self.contents[head]

    def ancestors(self, snapshot_id: int | None) -> list[int]:
        """Return a snapshot and those before it."""
        found: list[int] = []
        while snapshot_id is not None and snapshot_id in self.parents:
            found.append(snapshot_id)
            snapshot_id = self.parents[snapshot_id]
        return found

    def contained(self, snapshot_id: int | None) -> set[int]:
        """Return a snapshot, those before it, and those of branches that were published."""
        found, left = set[int](), [snapshot_id]
        while left:
            each = left.pop()
            if each is not None and each in self.parents and each not in found:
                found.add(each)
                left += [self.parents[each], self.merged.get(each)]
        return found

    def parting(self, branch: str) -> int | None:
        """Return the newest snapshot that main and a branch have in common; they are listed in their order."""
        both = self.contained(self.refs[MAIN]) & self.contained(self.refs.get(branch))
        return next((each for each in reversed(list(self.parents)) if each in both), None)

    def began_empty(self, branch: str) -> bool:
        """Return whether main and a branch both lead back to an empty table."""
        return all(self.parents[self.ancestors(self.refs[ref])[-1]] is None for ref in (MAIN, branch))

    def started(self, base: int | None, theirs: int) -> Rows:
        """Return the rows that main and a version began with: of a snapshot that both contain, with what was picked.

        base: None is the empty table. A snapshot that one of them has picked, and the other one contains or has picked,
        too, is part of both.
        """
        main, known = self.contained(self.refs[MAIN]), self.contained(base)
        sides = main - known, self.contained(theirs) - known
        picks = [{origin for each in side for origin in self._origins(each)} for side in sides]
        both = (picks[0] & (sides[1] | picks[1])) | (picks[1] & sides[0])
        rows = Counter(() if base is None else self.contents[base])
        for each in (snapshot for snapshot in self.parents if snapshot in both):
            parent = self.parents[each]
            before = Counter(() if parent is None else self.contents.get(parent, ()))
            after = Counter(self.contents[each])
            if before - after <= rows:
                rows = rows - (before - after) + (after - before)
        return joined(rows.elements())

    def _origins(self, snapshot: int) -> Iterator[int]:
        """Yield what a snapshot is a cherry-pick of, directly or not."""
        known: int | None = snapshot
        while known is not None and (known := self.picked.get(known)) is not None:
            yield known


@dataclass(frozen=True)
class Expected:
    """What a table must look like after a change: the rows at each ref, and what else it has.

    snapshots: how many came. gone: which went.
    """

    heads: Mapping[str, Rows]
    columns: tuple[str, ...]
    properties: Mapping[str, str]
    snapshots: int = 0
    gone: frozenset[int] = frozenset()

    def at(self, ref: str, rows: Rows) -> "Expected":
        """Say what a ref leads to."""
        return replace(self, heads={**self.heads, ref: rows})

    def written(self, ref: str, rows: Rows) -> "Expected":
        """Say what a new snapshot has made of a branch."""
        return replace(self.at(ref, rows), snapshots=self.snapshots + 1)


@dataclass(frozen=True)
class Landing:
    """A change that takes effect.

    since: the table as it was from when the change began, up to when it took effect. after: what became of it.
    """

    since: Sequence[State]
    after: State

    @property
    def before(self) -> State:
        return self.since[-1]


Effect = Callable[[Expected, Landing], Expected]


def expect_nothing(state: State) -> Expected:
    """Describe a table that does not change."""
    heads = {ref: state.rows(ref) for ref in state.refs}
    return Expected(heads, state.columns, state.properties)


def appended(rows: Rows, ref: str = MAIN) -> Effect:
    return lambda expected, _: expected.written(ref, joined(expected.heads.get(ref, ()), rows))


def overwritten(rows: Rows, key: int | None, ref: str, isolation: str) -> Effect:
    """Rows of a key, or all, are replaced. Under snapshot isolation those may stay that came after the start."""

    def effect(expected: Expected, landing: Landing) -> Expected:
        before = expected.heads.get(ref, ())
        stays = [row for row in before if not matches(row, key)]
        if isolation == "snapshot":
            seen = set(before).intersection(*(state.rows(ref) for state in landing.since))
            left = landing.after.rows(ref)
            stays += [row for row in before if matches(row, key) and row not in seen and row in left]
        return expected.written(ref, joined(stays, rows))

    return effect


def named(name: str, snapshot_id: int) -> Effect:
    return lambda expected, landing: expected.at(name, landing.before.contents[snapshot_id])


def forgotten(name: str) -> Effect:
    return lambda expected, _: replace(expected, heads={k: v for k, v in expected.heads.items() if k != name})


def published(branch: str) -> Effect:
    """The changes of a branch since it left main are in main, as one snapshot if main has changed since."""

    def effect(expected: Expected, landing: Landing) -> Expected:
        before, base = landing.before, landing.before.parting(branch)
        if before.refs[MAIN] is None or before.refs[MAIN] in before.contained(before.refs[branch]):
            return expected.at(MAIN, expected.heads[branch])
        if base is None and not before.began_empty(branch):
            raise Violation(f"{branch} was published, which has no snapshot in common with main")
        head = before.refs[branch]
        assert head is not None
        began = before.started(base, head)
        return expected.written(MAIN, _three_way(began, before.rows(branch), before.rows(), landing.after.rows()))

    return effect


def published_together(branch: str) -> Effect:
    """The same, of one of several tables: it stays as it is if it has nothing to publish."""

    def effect(expected: Expected, landing: Landing) -> Expected:
        if landing.after != landing.before:
            return published(branch)(expected, landing)
        if not is_published(landing.before, branch):
            raise Violation(f"{branch} was published of other tables, and not of this one")
        return expected

    return effect


def rebased(branch: str, *, squashes: bool) -> Effect:
    """The changes of a branch come after those of main: one snapshot for each of its own, or for all of them."""

    def effect(expected: Expected, landing: Landing) -> Expected:
        before, after = landing.before, landing.after
        base, rows = before.parting(branch), before.rows()
        own = before.contained(before.refs[branch]) - before.contained(before.refs[MAIN])
        line = [each for each in before.ancestors(before.refs[branch]) if each in own][::-1]
        new = [each for each in after.ancestors(after.refs[branch]) if each not in before.contents][::-1]
        copies = {after.merged[each]: each for each in new}
        if list(copies) != [each for each in line if each in copies] or (squashes and set(copies) - {*line[-1:]}):
            raise Violation(f"a rebase of {line} has copied {list(copies)}")
        begins = after.parents[new[0]] if new else after.refs[branch]
        if begins != before.refs[MAIN] or (base is None and not before.began_empty(branch)):
            raise Violation(f"a rebase of {branch} does not begin at the head of main")
        known = after.contents
        for each in line[-1:] if squashes else line:
            found = known[copies[each]] if each in copies else rows
            rows = _three_way(before.started(base, each), known[each], rows, found)
            if rows != found:
                raise Violation(f"{each} of {branch} has become {copies.get(each, 'nothing')} with {found}, not {rows}")
            base = each
        return replace(expected.at(branch, rows), snapshots=len(new))

    return effect


def has_main(state: State, branch: str) -> bool:
    """Return whether a branch contains main, so that it need not be rebased."""
    return state.refs[MAIN] in state.contained(state.refs.get(branch))


@dataclass
class NamedTogether:
    """A name for several tables: it leads to what was main of all of them at one moment."""

    name: str
    is_branch: bool
    tables: Sequence[str]
    _moments: list[set[int]] = field(default_factory=list)

    def effects(self) -> Mapping[str, Effect]:
        """Return what it does to each table."""
        return dict.fromkeys(self.tables, self._effect)

    def _effect(self, expected: Expected, landing: Landing) -> Expected:
        head = landing.after.refs.get(self.name)
        was_empty = head is not None and head not in landing.before.contents
        main = None if was_empty else head
        self._moments.append({at for at, state in enumerate(landing.since) if state.refs[MAIN] == main})
        if len(self._moments) == len(self.tables) and not set.intersection(*self._moments):
            raise Violation(f"{self.name} names versions that were never there together")
        if was_empty and self.is_branch:
            return expected.written(self.name, ())
        return expected if head is None else expected.at(self.name, landing.before.contents[head])


def applied(before: int, after: int) -> Effect:
    """What distinguishes one snapshot from another is applied to main."""

    def effect(expected: Expected, landing: Landing) -> Expected:
        known = landing.before.contents
        return expected.written(
            MAIN, _three_way(known[before], known[after], landing.before.rows(), landing.after.rows())
        )

    return effect


def is_published(state: State, branch: str) -> bool:
    """Return whether there is nothing to publish."""
    head, base = state.refs.get(branch), state.parting(branch)
    if head is None or head in state.contained(state.refs[MAIN]):
        return head is not None
    return state.started(base, head) == state.rows(branch)


def _three_way(base: Rows, theirs: Rows, ours: Rows, found: Rows) -> Rows:
    """Return what a change makes of other rows. An equality delete also deletes rows that it does not know."""
    was, now, other = Counter(base), Counter(theirs), Counter(ours)
    # No two changes make the same row: one that both sides have came with a change that was picked.
    gone, new = was - now, Counter({row: n for row, n in (now - was).items() if other[row] <= was[row]})
    picked = {key for key, _ in (now - was) - new}
    keys = {key for key, _ in (*gone, *new)}
    added = {key for key, _ in new}
    result = other - gone + new
    for row, count in list(result.items()):
        is_foreign = row[0] in keys and row not in was and row not in now
        is_missing = found.count(row) < count
        both_changed = any(key == row[0] for key, _ in gone - other) and row[0] in added - picked
        if is_foreign and both_changed and not is_missing:
            raise Violation(f"{row} was published to, though both sides changed it")
        if is_foreign and is_missing:
            del result[row]
    return joined(result.elements())


def rolled_back(snapshot_id: int) -> Effect:
    def effect(expected: Expected, landing: Landing) -> Expected:
        if not any(snapshot_id in state.ancestors(state.refs[MAIN]) for state in landing.since):
            raise Violation(f"main was rolled back to {snapshot_id}, which was not in its past")
        return expected.at(MAIN, landing.before.contents[snapshot_id])

    return effect


def with_column(name: str) -> Effect:
    return lambda expected, _: replace(expected, columns=(*expected.columns, name))


def without_column(name: str) -> Effect:
    return lambda expected, _: replace(expected, columns=tuple(c for c in expected.columns if c != name))


def with_property(key: str, value: str) -> Effect:
    return lambda expected, _: replace(expected, properties={**expected.properties, key: value})


def only_if_read(count: int) -> Effect:
    """The table was read, and must be as it was."""

    def effect(expected: Expected, landing: Landing) -> Expected:
        if len(landing.before.rows()) != count:
            raise Violation(f"a transaction that had read {count} rows landed on {len(landing.before.rows())}")
        return expected

    return effect


def only_if_rows(rows: Rows, key: int | None) -> Effect:
    """The rows of a key, or all, were read, and must be as they were."""

    def effect(expected: Expected, landing: Landing) -> Expected:
        now = tuple(row for row in landing.before.rows() if matches(row, key))
        if now != rows:
            raise Violation(f"a transaction that had read {rows} of {key} landed on {now}")
        return expected

    return effect


def upserted(rows: Rows, ref: str) -> Effect:
    """All rows of a key have the new value; a key without rows gets one."""
    new = dict(rows)

    def effect(expected: Expected, _: Landing) -> Expected:
        before = expected.heads.get(ref, ())
        changed = [(key, new.get(key, value)) for key, value in before]
        known = {key for key, _ in before}
        return expected.written(ref, joined(changed, tuple(row for row in rows if row[0] not in known)))

    return effect


def updated(key: int, more: int, ref: str, isolation: str) -> Effect:
    """Rows of a key get a larger value. Under snapshot isolation those may stay that came after the start."""

    def effect(expected: Expected, landing: Landing) -> Expected:
        before, left = expected.heads.get(ref, ()), landing.after.rows(ref)
        seen = set(before).intersection(*(state.rows(ref) for state in landing.since))

        def new(row: Row) -> Row:
            may_stay = isolation == "snapshot" and row not in seen and row in left
            return (row[0], row[1] + more) if matches(row, key) and not may_stay else row

        return expected.written(ref, joined([new(row) for row in before], ()))

    return effect


def merged(rows: Rows, scale: int, ref: str) -> Effect:
    """A matched row is deleted by an even value, and grows by an odd one; a key without rows gets one."""
    new = dict(rows)

    def effect(expected: Expected, _: Landing) -> Expected:
        before = expected.heads.get(ref, ())
        stays = [row for row in before if new.get(row[0], 1) % 2]
        changed = [(key, value + new[key] * scale if key in new else value) for key, value in stays]
        known = {key for key, _ in before}
        return expected.written(ref, joined(changed, tuple(row for row in rows if row[0] not in known)))

    return effect


def replaced_by_key(rows: Rows, ref: str) -> Effect:
    keys = {key for key, _ in rows}

    def effect(expected: Expected, _: Landing) -> Expected:
        stays = [row for row in expected.heads.get(ref, ()) if row[0] not in keys]
        return expected.written(ref, joined(stays, rows))

    return effect


def without_snapshots(gone: frozenset[int]) -> Effect:
    return lambda expected, _: replace(expected, gone=gone)


def expired(keep: int) -> Effect:
    """Snapshots go that no ref needs, and the newest of main stay."""

    def effect(expected: Expected, landing: Landing) -> Expected:
        gone = landing.before.contents.keys() - landing.after.contents.keys()
        newest = landing.before.ancestors(landing.before.refs[MAIN])[:keep]
        if needed := gone.intersection(newest, landing.before.refs.values()):
            raise Violation(f"snapshots {needed} were removed, which had to stay")
        return replace(expected, gone=frozenset(gone))

    return effect


def replaced(columns: tuple[str, ...]) -> Effect:
    """The table is another one, and nobody changed it since the replacement began."""
    return lambda expected, _: replace(expected.at(MAIN, ()), columns=columns)


def rewritten(ref: str = MAIN) -> Effect:
    """The rows move to other files, and are the same."""
    return lambda expected, _: expected.written(ref, expected.heads[ref])


def together(*effects: Effect) -> Effect:
    """One after the other."""

    def effect(expected: Expected, landing: Landing) -> Expected:
        for each in effects:
            expected = each(expected, landing)
        return expected

    return effect


def matches(row: Row, key: int | None) -> bool:
    return key is None or row[0] == key


def joined(*parts: Any) -> Rows:
    return tuple(sorted(row for part in parts for row in part))


class Fate(Enum):
    """The outcome of a change as reported to its writer."""

    OPEN = "open"
    ACKNOWLEDGED = "acknowledged"
    REFUSED = "refused"
    UNKNOWN = "unknown"


@dataclass
class Intent:
    """A change that somebody tries to make.

    effects: what it does to which table. idle_if: a state in which it has nothing to do, so that it need not land.
    refusals: errors with which it may fail though nothing is broken. is_rewrite: it changes no rows, and nobody may
    fail because of it. removed: files it removed since its last swap.
    """

    actor: str
    what: str
    effects: Mapping[str, Effect]
    idempotency_key: str | None = None
    idle_if: Callable[[State], bool] | None = None
    refusals: tuple[type[IcefieldError], ...] = ()
    is_rewrite: bool = False
    began: int = 0
    fate: Fate = Fate.OPEN
    landed_at: int | None = None
    proposed: Sequence[PointerSwap] = ()
    removed: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return f"{self.what} by {self.actor}"
