"""Delete what marks list, when nothing needs it any more.

The order is the proof:

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
from icefield.commit.operations.tables import TableVersion
from icefield.commit.relocate import Progress
from icefield.dml.head import TableHead
from icefield.errors import CatalogError, MissingFile
from icefield.leases.folder import gc_folders, metadata_folder, store_time_ms
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
from icefield.model.names import TableName
from icefield.properties.upkeep import GC_LEASE_TTL_MS
from icefield.storage.store import Store, delete_many
from icefield.upkeep.checks import check_enabled, check_identity, find_proposed, grace_of
from icefield.upkeep.files import NO_TABLE_FILES, FileKind, TableFiles, concat_files, fold
from icefield.upkeep.mark import Mark, finish_audit, list_marks, read_audits, read_unless_done, write_audit
from icefield.upkeep.owned import Ownership
from icefield.upkeep.reachable import find_pinned, find_proposed_files, find_reachable
from icefield.upkeep.result import HeldBack, SweepResult

T = TypeVar("T")
_LOOKS = 10
_BATCH = 1_000  # what one request to an object store may delete


def silent(_: str) -> None:
    """Report nothing."""


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


def sweep(head: TableHead, *, dry_run: bool = False, progress: Progress = silent) -> SweepResult:
    """Delete the files of all marks whose grace period is over; return what was deleted, and what waits."""
    backend, base = head.backend, head.load()
    check_enabled(base.metadata.properties)
    grace_ms = grace_of(base.metadata.properties)
    folders = gc_folders(base.metadata, backend.store)
    marks = list_marks(backend.store, folders)
    now_ms = store_time_ms(backend.store, folders[0], backend.ambient) if marks or not dry_run else 0
    leases, tally = LeaseCheck([]), _Tally()
    if not marks:
        leases = check_leases(backend, head.name, base, folders, now_ms, dry_run=dry_run)
    else:
        leases, due = look_until_settled(lambda: _look(head, folders, now_ms, dry_run=dry_run))
        due.progress = progress
        for mark in marks:
            if now_ms - mark.made_ms >= grace_ms:
                due.sweep(mark, tally)
            else:
                files = read_unless_done(backend.store, mark, base.metadata.table_uuid) or NO_TABLE_FILES
                tally.waiting.append(
                    HeldBack(_within_grace(grace_ms, now_ms - mark.made_ms), files.num_rows, files.total_bytes)
                )
    if not dry_run:
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


def _look(head: TableHead, folders: Sequence[str], now_ms: int, *, dry_run: bool) -> "tuple[LeaseCheck, _Due]":
    """Sample the leases, then load the newest metadata; in this order."""
    leases = check_leases(head.backend, head.name, head.load(), folders, now_ms, dry_run=dry_run)
    return leases, _Due(head.backend, check_owner(head, leases, now_ms), leases, dry_run=dry_run)


def check_owner(head: TableHead, leases: LeaseCheck, now_ms: int) -> list[TableVersion]:
    """Refuse a table that is not the only owner of its files, or that a catalog has in an older version.

    Return the newest version, and then those that may have been committed after it.
    """
    # Metadata files are listed first: a commit in between would look like one that the catalog has lost.
    folder = metadata_folder(head.load().metadata)
    listed = list(head.backend.store.list(folder))
    newest = head.load()
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


class _Due:
    """Sweeps the marks of one table whose time has come, with one look at what is in use."""

    def __init__(
        self, backend: Backend, versions: Sequence[TableVersion], leases: LeaseCheck, *, dry_run: bool
    ) -> None:
        self._backend = backend
        self._newest = newest = versions[0]
        self._leases = leases
        self._dry_run = dry_run
        self.progress: Progress = silent
        self._owned = Ownership(newest.metadata)
        reading = backend.reading
        kept = [find_reachable(reading, newest.metadata, newest.location), find_proposed_files(reading, versions[1:])]
        self._reachable = fold(concat_files(kept).location)
        self._pinned = fold(find_pinned(reading, leases.readers).location)

    def sweep(self, mark: Mark, tally: _Tally) -> None:
        """Delete the files of one mark."""
        store, table = self._backend.store, self._newest.metadata.table_uuid
        files = read_unless_done(store, mark, table)
        if files is None:
            return
        begun, gone = read_audits(store, mark, table)
        # A mark stays while a lease holds one of its files; what was deleted before is not deleted and recorded again.
        left = files.filter(pc.invert(files.is_in(fold(gone.location))))
        unneeded = left.filter(pc.invert(left.is_in(self._reachable)))
        owned = unneeded.filter(pc.is_valid(self._owned.kinds(unneeded.location)))
        is_held = self._is_held(owned)
        free, waiting = owned.filter(pc.invert(is_held)), owned.filter(is_held)
        tally.deleted.append(free)
        if waiting.num_rows:
            tally.waiting.append(HeldBack("held by leases", waiting.num_rows, waiting.total_bytes))
        if self._dry_run:
            return
        if free.num_rows:
            audit = write_audit(store, self._backend.ambient, mark, table, free)
            self._delete(free)
            finish_audit(store, audit)
        for location in begun:
            finish_audit(store, location)
        if not waiting.num_rows:
            store.delete(mark.location)
            tally.marks_done += 1

    def _is_held(self, files: TableFiles) -> pa.ChunkedArray:
        return pc.or_(files.is_in(self._pinned), self._leases.is_written(files.location))

    def _delete(self, files: TableFiles) -> None:
        delete_in_order(self._backend.store, files, self.progress)


def delete_in_order(store: Store, files: TableFiles, progress: Progress) -> None:
    """Delete files, those of one kind together, and what refers to a file after it."""
    ordered = files.sort_by("kind", "location")
    for kind in FileKind:
        locations = ordered.filter(pc.equal(ordered.kind, int(kind))).location.to_pylist()
        for start in range(0, len(locations), _BATCH):
            batch = locations[start : start + _BATCH]
            delete_many(store, batch)
            for location in batch:
                progress(location)


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


def _within_grace(grace_ms: int, age_ms: int) -> str:
    return f"within the grace period, for another {max(grace_ms - age_ms, 0) / 3_600_000:.1f} hours"
