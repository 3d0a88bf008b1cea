"""Delete what marks list, when nothing needs it any more.

Metadata files that left the metadata log are marked first (`commit.operations.retired_metadata`). Then the order is the
proof:

    1  read the marks            their files were unreachable when they were written
    2  wait for the grace        for readers without a lease
    3  sample the leases         who takes one later reads the pointer after that, and finds the snapshots gone
    4  load the newest metadata  a file may be in use again: added again, or needed by a new branch
    5  write the audit           complete before the first delete
    6  delete                    data before the manifests that list it, metadata last

Any number of sweeps may run at once, and one that was interrupted is finished by the next.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from icefield.backend import Backend
from icefield.commit.operations.retired_metadata import mark_retired
from icefield.commit.operations.tables import TableVersion
from icefield.commit.relocate import Progress
from icefield.dml.head import TableHead
from icefield.errors import CatalogError, MissingFile
from icefield.leases.folder import gc_folders, metadata_folder, seen_time_ms, store_time_ms
from icefield.leases.record import is_of_write
from icefield.leases.sample import (
    SeenLease,
    declare_dead,
    forget_dead,
    held,
    note_sightings,
    sample_leases,
    write_ids,
)
from icefield.marks.clear import Cleared, MarkClearing
from icefield.marks.files import NO_TABLE_FILES, FileKind, TableFiles, concat_files, fold
from icefield.marks.grace import grace_of
from icefield.marks.mark import Mark, list_marks, read_unless_done, remove_old_audits
from icefield.model.names import TableName
from icefield.properties.upkeep import GC_LEASE_TTL_MS
from icefield.upkeep.checks import check_enabled, check_identity, find_proposed, load_newest
from icefield.upkeep.owned import Ownership
from icefield.upkeep.reachable import find_pinned, find_proposed_files, find_reachable
from icefield.upkeep.result import HeldBack, SweepResult, silent

T = TypeVar("T")
_LOOKS = 10


@dataclass(frozen=True)
class LeaseCheck:
    """The leases of a table at one moment."""

    held: Sequence[SeenLease]
    dead: Sequence[SeenLease] = ()

    @property
    def readers(self) -> list[SeenLease]:
        """Leases that pin files by name or snapshot."""
        return [seen for seen in self.held if seen.record is None or seen.record.pins or seen.record.files]

    @property
    def write_ids(self) -> list[str]:
        """The ids of open writes."""
        return write_ids(self.held)

    def is_written(self, locations: pa.ChunkedArray) -> pa.Array:
        """Return which files belong to open writes, by their names."""
        ids = self.write_ids
        if not ids:
            return pa.repeat(pa.scalar(value=False), len(locations))
        return pa.array([is_of_write(location, ids) for location in locations.to_pylist()], pa.bool_())


@dataclass
class _Tally:
    deleted: list[TableFiles] = field(default_factory=list)
    waiting: list[HeldBack] = field(default_factory=list)
    marks_done: int = 0

    def add(self, mark: Mark, cleared: Cleared | None, *, is_dry_run: bool) -> None:
        """Add what became of one mark."""
        if cleared is None:
            return
        self.deleted.append(cleared.deleted)
        if cleared.waiting.num_rows:
            self.wait(mark, cleared.waiting, "held by leases")
        elif not is_dry_run:
            self.marks_done += 1

    def wait(self, mark: Mark, files: TableFiles, reason: str) -> None:
        """Add files of a mark that wait."""
        self.waiting.append(HeldBack(reason, files.num_rows, files.total_bytes, mark.reason))


def sweep(head: TableHead, *, dry_run: bool = False, progress: Progress = silent) -> SweepResult:
    """Delete the files of all marks whose grace period is over; return what was deleted, and what waits."""
    backend, base = head.backend, head.load()
    check_enabled(base.metadata.properties)
    grace_of(base.metadata.properties)
    folders = gc_folders(base.metadata, backend.store)
    marks = list_marks(backend.store, folders)
    if not dry_run and mark_retired(backend, base, marks) is not None:
        marks = list_marks(backend.store, folders)
    time_ms = seen_time_ms if dry_run else store_time_ms
    now_ms = time_ms(backend.store, folders[0], backend.ambient) if marks or not dry_run else 0
    leases, tally = LeaseCheck([]), _Tally()
    if not marks:
        leases = check_leases(backend, head.name, base, folders, now_ms, dry_run=dry_run)
    else:
        leases, in_use = look_until_settled(lambda: _look(head, folders, now_ms, dry_run=dry_run))
        clearing = MarkClearing(backend.store, backend.ambient, in_use.table, in_use.choose, progress)
        for mark in marks:
            left_ms = grace_of(base.metadata.properties, mark.reason) - (now_ms - mark.made_ms)
            if left_ms <= 0:
                tally.add(mark, clearing.clear(mark, dry_run=dry_run), is_dry_run=dry_run)
            else:
                files = read_unless_done(backend.store, mark, in_use.table) or NO_TABLE_FILES
                tally.wait(mark, files, _within_grace(left_ms))
    if not dry_run:
        remove_old_audits(backend.store, folders, base.metadata.properties, now_ms)
        forget_dead(backend.store, sample_leases(backend.store, folders))
    deleted = concat_files(tally.deleted)
    return SweepResult(
        str(head.name),
        dry_run,
        deleted.num_rows,
        deleted.total_bytes,
        count_kinds(deleted),
        tally.marks_done,
        tuple(tally.waiting),
        len(leases.held),
        len(leases.dead),
    )


def look_until_settled(look: Callable[[], T]) -> T:
    """Find out what is in use; look again if another collector deleted a file since the metadata was loaded."""
    for _ in range(_LOOKS - 1):
        with suppress(MissingFile):
            return look()
    return look()


def _look(head: TableHead, folders: Sequence[str], now_ms: int, *, dry_run: bool) -> "tuple[LeaseCheck, _InUse]":
    """Sample the leases, then load the newest metadata; in this order."""
    leases = check_leases(head.backend, head.name, head.load(), folders, now_ms, dry_run=dry_run)
    return leases, _InUse(head.backend, check_owner(head, leases, now_ms), leases)


def check_owner(head: TableHead, leases: LeaseCheck, now_ms: int) -> list[TableVersion]:
    """Refuse a table that is not the only owner of its files, or that a catalog has in an older version.

    Return the newest version, and then those that may have been committed after it.
    """
    # Metadata files are listed first: a commit in between would look like one that the catalog has lost.
    folder = metadata_folder(head.load().metadata)
    listed = list(head.backend.store.list(folder))
    newest = load_newest(head)
    if metadata_folder(newest.metadata) != folder:
        raise CatalogError("the table's directories changed while they were listed", hint="Run it again")
    check_identity(head.backend, head.name, newest)
    return [newest, *find_proposed(head.backend.reading, newest, listed, leases.write_ids, now_ms)]


def check_leases(
    backend: Backend, name: TableName, version: TableVersion, folders: Sequence[str], now_ms: int, *, dry_run: bool
) -> LeaseCheck:
    """Sample the leases of a table, and declare those dead that nobody renews; a dry run only samples.

    A writer may have stopped between its last renewal and its swap. Where the catalog can, its swap is fenced before
    its files are taken for unreferenced ones.
    """
    sampled = sample_leases(backend.store, folders)
    alive = held(sampled)
    if dry_run:
        return LeaseCheck(alive)
    note_sightings(backend.store, alive)
    lost = declare_dead(backend.store, alive, now_ms, GC_LEASE_TTL_MS.read(version.metadata.properties))
    dead = [*lost, *(seen for seen in sampled if seen.is_dead)]
    if stopped := write_ids(dead):
        backend.catalog.fence(name, stopped)
    return LeaseCheck([seen for seen in alive if seen not in lost], dead)


class _InUse:
    """What the newest version, those that may follow it, and leases need of a table's files."""

    def __init__(self, backend: Backend, versions: Sequence[TableVersion], leases: LeaseCheck) -> None:
        newest, reading = versions[0], backend.reading
        self.table = newest.metadata.table_uuid
        self._leases = leases
        self._owned = Ownership(newest.metadata)
        kept = [find_reachable(reading, newest.metadata, newest.location), find_proposed_files(reading, versions[1:])]
        self._reachable = fold(concat_files(kept).location)
        self._pinned = fold(find_pinned(reading, leases.readers).location)

    def choose(self, files: TableFiles) -> tuple[TableFiles, TableFiles]:
        """Return which files may be deleted now, and which leases hold."""
        unneeded = files.filter(pc.invert(files.is_in(self._reachable)))
        owned = unneeded.filter(pc.is_valid(self._owned.kinds(unneeded.location)))
        is_held = pc.or_(owned.is_in(self._pinned), self._leases.is_written(owned.location))
        return owned.filter(pc.invert(is_held)), owned.filter(is_held)


def count_kinds(files: TableFiles) -> dict[str, int]:
    """Count files by kind, in the order of deletion."""
    counts = {each["values"]: each["counts"] for each in pc.value_counts(files.kind).to_pylist()}
    return {_WORDS[kind]: counts[int(kind)] for kind in FileKind if int(kind) in counts}


_WORDS = {
    FileKind.TEMPORARY: "temporary",
    FileKind.DATA: "data",
    FileKind.DELETES: "deletes",
    FileKind.STATISTICS: "statistics",
    FileKind.MANIFEST: "manifests",
    FileKind.MANIFEST_LIST: "manifest lists",
    FileKind.METADATA: "metadata",
}


def _within_grace(left_ms: int) -> str:
    return f"within the grace period, for another {left_ms / 3_600_000:.1f} hours"
