"""Apply a change of rows to another version: three versions, compared file by file, and row by row where needed.

    base  ── theirs    the change: rows removed, files added
       └──── ours      the version that it is applied to

A removed row is deleted where it is in `ours`. A row that is not there any more collides, unless the change only moved
it to one of its own files: then it is left out there. Rows that were moved are found by the row maps of rewrites, else
by their row ids, if they have any, else by their values. For example:

    base    a: 0 1 2 3
    theirs  a is compacted to c, and row 1 deleted:  c: 0 2 3
    ours    row 2 of a is deleted
    result  a is removed, c is added with row 1 (that was row 2 of a) deleted

Files that only `ours` changed are not looked at. Files that both sides added are the same change, which both contain:
only rows that `theirs` deleted there since are deleted.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from icefield.cache.reading import ReadContext
from icefield.commit.replay.decisions import NOT_DECIDED, Decider, Decision
from icefield.commit.replay.difference import Difference, load_deleted, without_keys
from icefield.commit.replay.row_ids import Lost, find_by_ids, without_ids
from icefield.commit.replay.row_values import find_by_values
from icefield.commit.snapshot.moved_rows import NO_POSITIONS, Places, RowMaps
from icefield.commit.snapshot.position_deletes import with_deletes
from icefield.model.metadata import TableMetadata
from icefield.parquet.read.deletes import Positions
from icefield.parquet.read.task import DeleteFile, FileTask


@dataclass(frozen=True)
class Side:
    """One of the two versions that came after the base: how it differs from it, and where its rewrites moved rows.

    replaces_by_keys: it may have replaced rows by equality deletes, so that rows with other ids stand for them.
    """

    difference: Difference
    maps: RowMaps
    replaces_by_keys: bool = False

    @cached_property
    def removed(self) -> frozenset[str]:
        """The files of the base that it does not have."""
        return self.difference.removed.paths

    @cached_property
    def added(self) -> Mapping[str, FileTask]:
        """The files that the base does not have."""
        return {task.location: task for task in self.difference.after.tasks(self.difference.added)}

    def find(self, paths: Iterable[str]) -> dict[str, FileTask]:
        """Return files that it has and whose deletes may differ from those in the base."""
        after = self.difference.after
        return {task.location: task for task in after.tasks(after.files.at(paths))}


@dataclass
class AppliedRows:
    """What a change does to `ours`.

    removed: files without any row left. deleted: the rows to delete in other files; before: their earlier deletes.
    added: the new files, with their deleted rows. lost: rows that were removed or changed on both sides.
    """

    removed: set[str] = field(default_factory=set)
    deleted: dict[str, Positions] = field(default_factory=dict)
    before: dict[str, Positions] = field(default_factory=dict)
    added: dict[str, Positions] = field(default_factory=dict)
    lost: list[Lost] = field(default_factory=list)

    def leave_out(self, positions: Mapping[str, Positions], files: Mapping[str, FileTask]) -> None:
        """Take more rows of new files for deleted; a file without any row left is not added."""
        for path in self.added.keys() & positions.keys():
            self.added[path] = np.union1d(self.added[path], positions[path])
            if len(self.added[path]) == files[path].record_count:
                del self.added[path]


@dataclass(frozen=True)
class RowChange:
    """The rows that a change removes: whole files of the base, and some of other files. restored: what it restores."""

    whole: Sequence[FileTask]
    some: Sequence[tuple[FileTask, Positions]]
    restored: Sequence[tuple[FileTask, Positions]]


def find_removed_rows(theirs: Difference, metadata: TableMetadata, context: ReadContext) -> RowChange:
    """Find the rows that a change removes, and those of files that stay which it restores."""
    tasks = [
        task
        for pair in theirs.changed
        for task in (pair.planned, with_deletes(pair.now, *without_keys(pair.now, theirs.key_deletes)))
    ]
    loaded = load_deleted(tasks, metadata, context.store)
    some, restored = [], []
    for pair, before, after in zip(theirs.changed, loaded, loaded, strict=True):
        if len(gone := np.setdiff1d(after, before)):
            some.append((pair.planned, gone))
        if len(back := np.setdiff1d(before, after)):
            restored.append((pair.now, back))
    return RowChange(list(theirs.before.tasks(theirs.removed)), some, restored)


def without_moved_rows(
    side: Side, change: RowChange, metadata: TableMetadata, context: ReadContext
) -> tuple[RowChange, Mapping[str, Positions]]:
    """Return a change without the rows that it only moves to another file, and where these are in its own files.

    theirs  rows 0 1 of file a are rewritten to file b, without row 0:  the change removes row 0, and moves row 1
    """
    whole = zip(change.whole, load_deleted(change.whole, metadata, context.store), strict=True)
    removed = [Lost(task, np.setdiff1d(np.arange(task.record_count), gone)) for task, gone in whole]
    removed += [Lost(task, positions) for task, positions in change.some]
    if not removed or side.difference.added.num_rows == 0:
        return change, {}
    rest, moved = RowApplication(side, side, metadata, context).leave_out_moved(removed)
    return RowChange((), [(each.task, each.positions) for each in rest], change.restored), moved


@dataclass
class RowApplication:
    """Applies the rows of `theirs` to `ours`."""

    theirs: Side
    ours: Side
    metadata: TableMetadata
    context: ReadContext
    decision: Decision = NOT_DECIDED
    _deleted: dict[tuple[str, tuple[DeleteFile, ...]], Positions] = field(default_factory=dict)
    _left_out: dict[str, list[Positions]] = field(default_factory=dict)
    _wanted: dict[str, list[Positions]] = field(default_factory=dict)

    def apply(self, change: RowChange) -> AppliedRows:
        """Find out what to remove, delete and add."""
        done = AppliedRows()
        for path in sorted(self._shared):
            self._wanted[path] = [np.setdiff1d(self._deleted_of(self.theirs.added[path]), self._here(path))]
        now = self.ours.find([task.location for task in (*change.whole, *(task for task, _ in change.some))])
        lost: list[Lost] = []
        for task in change.whole:
            if self._is_unchanged(task, now):
                done.removed.add(task.location)
            else:
                live = np.setdiff1d(np.arange(task.record_count), self._deleted_of(task))
                lost += self._remove(task, live, now)
        for task, positions in change.some:
            lost += self._remove(task, positions, now)
        done.lost = self._not_left_out(self._not_moved(self._not_shared(lost)))
        self.decision.check_files(each.task.location for each in done.lost)
        if self.decision and self.metadata.has_row_ids:
            done.lost = [each for decider in (None, *Decider) for each in self._decide(done.lost, decider)]
        self._finish(done, {**now, **self.ours.added}, {task.location: task for task, _ in change.some})
        return done

    def _decide(self, lost: Sequence[Lost], decider: Decider | None) -> list[Lost]:
        """Of the rows that a side decides about, drop what became of them on the other; return those that collide."""
        lost = [each for each in lost if self.decision.of(each.task.location) is decider]
        if not lost or decider is None:
            return list(lost)
        if decider is Decider.OURS:
            files, into = self.theirs.added, self._left_out
        else:
            files, into = self._added_by_ours, self._wanted
        rest = find_by_ids(lost, list(files.values()), self.metadata, self.context.store, into, changed=True)
        if decider is Decider.THEIRS and self.ours.replaces_by_keys:
            return rest
        return without_ids(lost, self.metadata, self.context.store)

    def leave_out_moved(self, lost: Sequence[Lost]) -> tuple[list[Lost], dict[str, Positions]]:
        """Return the rows that `theirs` removed or changed, and the places in its files of those that it only moved."""
        rest = self._not_left_out(lost)
        return rest, {path: np.concatenate(parts) for path, parts in self._left_out.items()}

    def _is_unchanged(self, task: FileTask, now: Mapping[str, FileTask]) -> bool:
        path = task.location
        return path not in self.ours.removed and (path not in now or set(now[path].deletes) == set(task.deletes))

    def _remove(self, task: FileTask, positions: Positions, now: Mapping[str, FileTask]) -> list[Lost]:
        """Delete rows where they are in `ours`; return those that are not found."""
        if self._is_unchanged(task, now):
            self._wanted.setdefault(task.location, []).append(positions)
            return []
        if task.location in self.ours.removed:
            places, there = self.ours.maps.trace(task.location, positions), self._added_by_ours
        else:
            places, there = {task.location: (np.arange(len(positions)), positions)}, now
        found = self._take(places, there, self._wanted)
        rest = np.setdiff1d(np.arange(len(positions)), found)
        return [Lost(task, positions[rest])] if len(rest) else []

    def _take(self, places: Places, there: Mapping[str, FileTask], into: dict[str, list[Positions]]) -> Positions:
        """Collect the rows that are live where they should be; return their numbers."""
        numbers = [NO_POSITIONS]
        for path, (rows, positions) in places.items():
            if path in there:
                is_live = ~np.isin(positions, self._deleted_of(there[path]))
                into.setdefault(path, []).append(positions[is_live])
                numbers.append(rows[is_live])
        return np.concatenate(numbers)

    @cached_property
    def _shared(self) -> frozenset[str]:
        """The files that both sides added."""
        is_same = self.ours is self.theirs
        return frozenset() if is_same else frozenset(self.theirs.added.keys() & self.ours.added.keys())

    @cached_property
    def _added_by_ours(self) -> Mapping[str, FileTask]:
        return {path: task for path, task in self.ours.added.items() if path not in self._shared}

    def _here(self, path: str) -> Positions:
        """Return the deleted rows of a file that `ours` added."""
        return self._deleted_of(self.ours.added[path])

    def _not_shared(self, lost: Sequence[Lost]) -> list[Lost]:
        """Return lost rows but those that both sides moved to the same file."""
        shared = {path: self.theirs.added[path] for path in sorted(self._shared)}
        return self._not_moved_by_theirs(lost, shared, {}) if shared else list(lost)

    def _not_moved(self, lost: Sequence[Lost]) -> list[Lost]:
        """Find lost rows in files that `ours` added."""
        return self._look_for(lost, self._added_by_ours, self._wanted)

    def _not_left_out(self, lost: Sequence[Lost]) -> list[Lost]:
        """Leave out rows that `theirs` only moved to its own files; return those that it removed or changed, too."""
        return self._not_moved_by_theirs(lost, self.theirs.added, self._left_out)

    def _not_moved_by_theirs(
        self, lost: Sequence[Lost], files: Mapping[str, FileTask], into: dict[str, list[Positions]]
    ) -> list[Lost]:
        """Find rows in files that `theirs` added; return those that are in none of them."""
        rest: list[Lost] = []
        for each in lost:
            places = self.theirs.maps.trace(each.task.location, each.positions)
            found = self._take(places, files, into)
            kept = np.setdiff1d(np.arange(len(each.positions)), found)
            rest += [Lost(each.task, each.positions[kept])] if len(kept) else []
        return self._look_for(rest, files, into)

    def _look_for(
        self, lost: Sequence[Lost], among: Mapping[str, FileTask], into: dict[str, list[Positions]]
    ) -> list[Lost]:
        """Find rows by their ids, then by their values; return those that are not found."""
        files, rest = list(among.values()), list(lost)
        for find in (find_by_ids, find_by_values) if self.metadata.has_row_ids else (find_by_values,):
            rest = find(rest, files, self.metadata, self.context.store, into) if rest else rest
        return rest

    def _finish(self, done: AppliedRows, now: Mapping[str, FileTask], base: Mapping[str, FileTask]) -> None:
        for path, parts in self._wanted.items():
            positions = np.unique(np.concatenate(parts))
            if len(positions) == 0:
                continue
            task = now[path] if path in now else base[path]
            before = self._deleted_of(task)
            if len(np.union1d(before, positions)) == task.record_count:
                done.removed.add(path)
            else:
                done.deleted[path], done.before[path] = positions, before
        for path, task in self.theirs.added.items():
            gone = np.union1d(self._deleted_of(task), np.concatenate([NO_POSITIONS, *self._left_out.get(path, ())]))
            if len(gone) < task.record_count and path not in now:
                done.added[path] = gone

    def _deleted_of(self, task: FileTask) -> Positions:
        key = task.location, task.deletes
        if key not in self._deleted:
            (self._deleted[key],) = load_deleted([task], self.metadata, self.context.store)
        return self._deleted[key]
