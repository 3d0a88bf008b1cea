"""Expire snapshots: remove them from the metadata, then mark the files that only they needed.

Files are marked after the pointer has moved, so a mark never lists a file of a snapshot that readers can still open. If
the process stops in between, the files are found as orphan files. In a transaction nothing is marked, because the
pointer moves later; those files are found as orphan files, too.
"""

from icefield.commit.action import WriteContext
from icefield.commit.actions.expire import ExpireSnapshots, RemoveTheseSnapshots
from icefield.commit.operations.tables import TableVersion
from icefield.commit.relocate import Progress
from icefield.dml.head import LiveHead, TableHead
from icefield.errors import IcefieldError, MissingFile
from icefield.leases.folder import gc_folder, gc_folders, store_time_ms
from icefield.leases.sample import held, sample_leases
from icefield.marks.files import NO_TABLE_FILES, TableFiles
from icefield.marks.grace import grace_of
from icefield.marks.mark import EXPIRED, write_mark
from icefield.model.apply import apply
from icefield.model.metadata import TableMetadata
from icefield.upkeep.checks import check_enabled
from icefield.upkeep.owned import Ownership
from icefield.upkeep.reachable import find_expired
from icefield.upkeep.result import ExpiryResult, silent
from icefield.upkeep.sweep import LeaseCheck, check_owner, count_kinds, sweep


def expire_snapshots(
    head: TableHead,
    action: ExpireSnapshots | RemoveTheseSnapshots,
    *,
    dry_run: bool = False,
    progress: Progress = silent,
) -> ExpiryResult:
    """Remove snapshots, mark their files, and delete those marked earlier whose grace period is over."""
    base = head.load()
    before = base.metadata
    check_enabled(before.properties)
    if dry_run:
        return _describe(head, before, _preview(head, before, action), is_dry_run=True)
    grace_of(before.properties)
    if isinstance(head, LiveHead):
        _check_first(head, base)
    after = head.commit([action])
    if not isinstance(head, LiveHead):
        return _describe(head, before, after, files=NO_TABLE_FILES)
    return _mark(head, before, after, progress)


def _check_first(head: TableHead, base: TableVersion) -> None:
    """Refuse before anything is changed what the sweep would refuse."""
    backend, folders = head.backend, gc_folders(base.metadata, head.backend.store)
    leases = LeaseCheck(held(sample_leases(backend.store, folders)))
    check_owner(head, leases, store_time_ms(backend.store, folders[0], backend.ambient))


def _mark(head: TableHead, before: TableMetadata, after: TableMetadata, progress: Progress) -> ExpiryResult:
    """Mark files after the commit; what fails now is reported, because the snapshots are gone already."""
    backend, files, mark = head.backend, NO_TABLE_FILES, None
    try:
        files = _find(head, before, after)
        if files.num_rows:
            mark = write_mark(backend.store, backend.ambient, gc_folder(after), after.table_uuid, EXPIRED, files)
        return _describe(head, before, after, files=files, mark=mark, swept=sweep(head, progress=progress))
    except IcefieldError as error:
        return _describe(head, before, after, files=files, mark=mark, unfinished=str(error))


def _preview(head: TableHead, before: TableMetadata, action: ExpireSnapshots | RemoveTheseSnapshots) -> TableMetadata:
    context = WriteContext.of(head.backend)
    updates = action.propose(before, context).updates
    return apply(before, updates, context.ambient.now_ms()) if updates else before


def _find(head: TableHead, before: TableMetadata, after: TableMetadata) -> TableFiles:
    try:
        files = find_expired(head.backend.reading, before, after)
    except MissingFile:
        # Another collector expired the same snapshots and has swept them. What is left is found as orphan files.
        return NO_TABLE_FILES
    return files.filter(Ownership(after).kinds(files.location).is_valid())


def _describe(
    head: TableHead,
    before: TableMetadata,
    after: TableMetadata,
    *,
    files: TableFiles | None = None,
    is_dry_run: bool = False,
    **more: object,
) -> ExpiryResult:
    found = _find(head, before, after) if files is None else files
    gone = sorted(s.snapshot_id for s in before.snapshots if after.snapshots.find(s.snapshot_id) is None)
    refs = tuple(sorted(before.refs.keys() - after.refs.keys()))
    return ExpiryResult(
        str(head.name),
        is_dry_run,
        tuple(gone),
        refs,
        found.num_rows,
        found.total_bytes,
        count_kinds(found),
        **more,  # type: ignore[arg-type]
    )
