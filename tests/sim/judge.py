"""Holds a run to its invariants, at every swap that takes effect, at every removed file, and at every answer.

- History is linear: a pointer moves from where it stood, and the new metadata's log leads back to there.
- A change lands once; what was acknowledged has landed, what was refused has not and never will.
- Every file that a current table leads to is there, and so is every file of a change whose outcome is unknown.
- The rows at every ref, the columns and the properties are those of the model.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tests.sim.model import Effect, Expected, Fate, Intent, Landing, State, Violation, expect_nothing
from tests.sim.reading import Reading, Rows
from tests.sim.watch import Watch

from icefield.catalog.catalog import PointerSwap
from icefield.commit.validate.ancestry import MERGED, PICKED
from icefield.errors import ConcurrentChange, IcefieldError, InvalidInput, MissingFile
from icefield.model.snapshot import MAIN
from icefield.storage.store import Store

Scan = Callable[[str, int], Rows]


class Judge:
    """Knows every version of every table. `scan` reads a snapshot of a table whose rows are unknown."""

    def __init__(self, store: Store, scan: Scan) -> None:
        self._store = store
        self._scan = scan
        self.reading = Reading(store)
        self.pointers: dict[str, str] = {}
        self.history: list[dict[str, State]] = [{}]
        self._jobs: dict[str, list[int]] = {}  # the snapshots that landed under an idempotency key
        self._parents: dict[int, int | None] = {}  # of every snapshot that there ever was
        self._expired: set[str] = set()
        self._landed: list[Intent] = []
        self.watch: Watch | None = None  # over leases and collectors
        self.foreign: frozenset[str] = frozenset()  # files that nobody may remove
        self.unmodelled: Callable[[], Mapping[str, str]] = dict  # pointers of tables of which only the files are judged

    @property
    def now(self) -> int:
        """How many swaps took effect so far."""
        return len(self.history) - 1

    @property
    def tables(self) -> Mapping[str, State]:
        """All tables as they are."""
        return self.history[-1]

    def begin(self, table: str, pointer: str) -> None:
        """Take a table as it is."""
        self.pointers[table] = pointer
        self.history[-1][table] = self._state(table, self.reading.metadata(pointer))

    def swapped(self, changes: Sequence[PointerSwap], intent: Intent) -> None:
        """Judge a swap that has just taken effect."""
        self._watch_landing(changes, intent)
        changes = [change for change in changes if str(change.table) in self.pointers]
        if not changes:
            return
        self._count(intent)
        moves = {str(c.table): c for c in changes if c.new != c.expected}
        after = dict(self.tables)
        for table, move in moves.items():
            if move.expected != self.pointers.get(table):
                raise Violation(f"{table} moved from {move.expected}, but stood at {self.pointers.get(table)}")
            assert move.new is not None, "nothing drops tables here"
            after[table] = self._load(table, move)
            if move.expected is not None:
                self._expired |= self.reading.log_of(move.expected)
                if self.tables[table].contents.keys() - after[table].contents.keys():
                    self._expired |= self.reading.files_of_table(move.expected)
            self.pointers[table] = move.new
        begun, before = intent.began, self.tables
        self.history.append(after)
        for state in after.values():
            self._parents |= state.parents
        if intent.idempotency_key is not None:
            heads = [after[table].refs[MAIN] for table in moves]
            self._jobs.setdefault(intent.idempotency_key, []).extend(head for head in heads if head is not None)
        for table in {*moves, *intent.effects}:
            if table not in before:
                continue
            since = [states[table] for states in self.history[begun:-1] if table in states]
            self._compare(table, intent.effects.get(table), Landing(since, after[table]), intent)

    def _watch_landing(self, changes: Sequence[PointerSwap], intent: Intent) -> None:
        """Judge the swap of any table by its files and leases alone."""
        if self.watch is not None:
            self.watch.landed((write_id for change in changes for write_id in change.write_ids), intent)
        for change in changes:
            if str(change.table) not in self.pointers and change.new is not None:
                self._check_files(change.new, f"{change.table} as it becomes")

    def stored(self, location: str, data: bytes, who: str, now: float) -> None:
        """Judge an object that was stored."""
        if self.watch is None:
            return
        if marked := self.watch.stored(location, data, who, now):
            for table, pointer in self._all_pointers():
                if used := marked.intersection(self.reading.files_of_table(pointer)):
                    raise Violation(f"{who} marks {sorted(used)}, which {table} leads to")

    def removed(self, location: str, who: str) -> None:
        """Judge the removal of an object of the collector."""
        if self.watch is not None:
            self.watch.removed(location, who)

    def removing(self, location: str, intent: Intent) -> None:
        """Judge the removal of a file."""
        intent.removed.append(location)
        if location in self.foreign:
            raise Violation(f"{intent} removes {location}, which is not the table's own")
        for table, pointer in self._all_pointers():
            if location in self.reading.files_of_table(pointer):
                raise Violation(f"{intent} removes {location}, which {table} leads to")
        if self.watch is not None and self.reading.is_there(location):
            self.watch.removing(location, intent.actor, self.reading.is_there)

    def _all_pointers(self) -> list[tuple[str, str]]:
        return [*self.pointers.items(), *self.unmodelled().items()]

    def acknowledge(self, intent: Intent) -> None:
        """Judge the news that a change was made."""
        intent.fate = Fate.ACKNOWLEDGED
        if intent.landed_at is not None or self._is_in_history(intent):
            return
        if intent.idle_if is None or not self._was(intent, intent.idle_if):
            raise Violation(f"{intent} was acknowledged, but did not land")

    def refuse(self, intent: Intent, error: IcefieldError) -> None:
        """Judge the news that a change was not made."""
        intent.fate = Fate.REFUSED
        if intent.landed_at is not None:
            raise Violation(f"{intent} failed with {type(error).__name__}, but landed: {error}")
        blames_others = isinstance(error, ConcurrentChange) and not isinstance(error, intent.refusals)
        refused_for_key = isinstance(error, InvalidInput) and intent.idempotency_key is not None
        if refused_for_key and (intent.idempotency_key not in self._jobs or self._was_always_in_history(intent)):
            raise Violation(f"{intent} was refused for its idempotency key, which has not left the history: {error}")
        if blames_others and not self._others_since(intent):
            raise Violation(f"{intent} failed because of another writer, but there was none: {error}")

    def doubt(self, intent: Intent) -> None:
        """Judge the news that nobody knows; the change may still land, so that all its files must be there."""
        intent.fate = Fate.UNKNOWN
        if self.watch is not None:
            self.watch.doubt([write_id for change in intent.proposed for write_id in change.write_ids], intent)
        if intent.removed:
            raise Violation(f"{intent.removed} was removed, though the outcome of {intent} is unknown")
        if all(change.expected == self.pointers.get(str(change.table)) for change in intent.proposed):
            for change in intent.proposed:
                self._check_files(str(change.new), f"{intent} may still land")

    def read(self, table: str, snapshot_id: int | None, rows: Rows) -> None:
        """Judge what a reader has read of a snapshot."""
        known = [s[table] for s in reversed(self.history) if table in s and snapshot_id in s[table].contents]
        expected = known[0].contents[snapshot_id] if known and snapshot_id is not None else ()
        if rows != expected:
            raise Violation(f"a reader of {table} at {snapshot_id} got {rows}, not {expected}")

    def read_together(self, heads: Mapping[str, int | None], began: int) -> None:
        """Judge that snapshots of several tables were current at one moment."""
        if not any(all(s[t].refs[MAIN] == h for t, h in heads.items()) for s in self.history[began:]):
            raise Violation(f"tables were read together that never stood so: {heads}")

    def finish(self) -> None:
        """Judge the end: all tables are whole."""
        for table, pointer in self.pointers.items():
            self._check_files(pointer, table)

    def leftovers(self, prefix: str) -> set[str]:
        """Name the files that nothing leads to, and nothing ever led to."""
        reachable = set[str]().union(*map(self.reading.files_of_table, self.pointers.values()))
        there = {file.location for file in self._store.list(prefix) if "/metadata/gc/" not in file.location}
        return there - reachable - self._expired

    def _count(self, intent: Intent) -> None:
        if intent.landed_at is not None:
            raise Violation(f"{intent} landed twice")
        if intent.fate is Fate.REFUSED:
            raise Violation(f"{intent} was refused, and landed afterwards")
        if self._is_in_history(intent):
            raise Violation(f"{intent} landed again under its idempotency key")
        intent.landed_at = self.now + 1
        self._landed.append(intent)

    def _is_in_history(self, intent: Intent) -> bool:
        """Return whether a change under the same idempotency key is in the history of main, expired or not."""
        (table, *_) = intent.effects
        head = self.tables[table].refs[MAIN] if table in self.tables else None
        while head is not None:
            if head in self._jobs.get(intent.idempotency_key or "", ()):
                return True
            head = self._parents.get(head)
        return False

    def _was_always_in_history(self, intent: Intent) -> bool:
        return self._is_in_history(intent) and not self._others_since(intent)

    def _load(self, table: str, move: PointerSwap) -> State:
        assert move.new is not None
        self._check_files(move.new, f"{table} as it becomes")
        metadata = self.reading.metadata(move.new)
        log = [entry["metadata-file"] for entry in metadata.get("metadata-log", ())]
        if move.expected is not None:
            if log[-1:] != [move.expected]:
                raise Violation(f"the log of {table} ends in {log[-1:]}, and does not lead back to {move.expected}")
            older = [e["metadata-file"] for e in self.reading.metadata(move.expected).get("metadata-log", ())]
            if log[:-1] and log[:-1] != older[-len(log[:-1]) :]:
                raise Violation(f"the log of {table} is not the one before it and one more")
        return self._state(table, metadata)

    def _state(self, table: str, metadata: Mapping[str, Any]) -> State:
        snapshots = {s["snapshot-id"]: s for s in metadata.get("snapshots", ())}
        refs: dict[str, int | None] = {MAIN: None}
        refs |= {name: ref["snapshot-id"] for name, ref in metadata.get("refs", {}).items()}
        known = self.tables[table].contents if table in self.tables else {}
        contents = {i: known[i] if i in known else self._content(table, s) for i, s in snapshots.items()}
        current = next(s for s in metadata["schemas"] if s["schema-id"] == metadata["current-schema-id"])
        return State(
            refs,
            contents,
            {i: s.get("parent-snapshot-id") for i, s in snapshots.items()},
            tuple(field["name"] for field in current["fields"]),
            {key: value for key, value in metadata.get("properties", {}).items() if "@" not in key},
            _named(snapshots, MERGED),
            _named(snapshots, PICKED),
        )

    def _content(self, table: str, snapshot: dict[str, Any]) -> Rows:
        rows = self.reading.content(snapshot)
        return self._scan(table, snapshot["snapshot-id"]) if rows is None else rows

    def _compare(self, table: str, effect: Effect | None, landing: Landing, intent: Intent) -> None:
        expected = expect_nothing(landing.before)
        if effect is not None:
            expected = effect(expected, landing)
        _check_same(f"{table} after {intent}", landing, expected)

    def _check_files(self, location: str, what: str) -> None:
        try:
            gone = self.reading.gone(self.reading.files_of_table(location))
        except MissingFile as missing:
            raise Violation(f"{missing}, though {what}") from missing
        if gone:
            raise Violation(f"{gone} is gone, though {what}")

    def _was(self, intent: Intent, condition: Callable[[State], bool]) -> bool:
        known = [states for states in self.history[intent.began :] if intent.effects.keys() <= states.keys()]
        return any(all(condition(states[table]) for table in intent.effects) for states in known)

    def _others_since(self, intent: Intent) -> bool:
        others = (other for other in self._landed if other is not intent and not other.is_rewrite)
        return any(other.landed_at and other.landed_at > intent.began for other in others)


def _check_same(what: str, landing: Landing, expected: Expected) -> None:
    after, before = landing.after, landing.before
    heads = {ref: after.rows(ref) for ref in after.refs}
    pairs = (
        ("rows", heads, expected.heads),
        ("columns", after.columns, expected.columns),
        ("properties", after.properties, expected.properties),
        ("new snapshots", len(after.contents.keys() - before.contents.keys()), expected.snapshots),
        ("lost snapshots", before.contents.keys() - after.contents.keys(), expected.gone),
    )
    for name, found, wanted in pairs:
        if found != wanted:
            raise Violation(f"{name} of {what}: {found}, not {wanted}")


def _named(snapshots: Mapping[int, Mapping[str, Any]], key: str) -> dict[int, int]:
    """Return the snapshots that summaries name, by the snapshot with the summary."""
    summaries = ((i, snapshot.get("summary", {})) for i, snapshot in snapshots.items())
    return {i: int(summary[key]) for i, summary in summaries if key in summary}
