"""Find files below a table's directories that nothing refers to, and mark them.

The order is the proof:

    1  list the store              a file that is written later is not looked at
    2  sample the leases           a writer whose files are listed has put its lease before them
    3  load the newest metadata    a commit that ended its lease before 2 is in it

A candidate is listed, not reachable, not held by a lease, not marked already, of a known kind, and older than an age by
the store's clock, which protects writers without a lease. If the listing does not fit the metadata, nothing is marked.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice
from typing import TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from icefield.cache.reading import ReadContext
from icefield.catalog.missing import METADATA_SUFFIXES
from icefield.commit.operations.tables import TableVersion
from icefield.commit.relocate import Progress
from icefield.commit.validate.ownership import roots_of
from icefield.dml.head import TableHead
from icefield.errors import CatalogError, InvalidInput
from icefield.leases.folder import gc_folder, gc_folders, seen_time_ms, store_time_ms
from icefield.marks.files import FileKind, TableFiles, concat_files, fold, fold_one, names_of, table_files
from icefield.marks.grace import DAY_MS, grace_of
from icefield.marks.mark import ORPHAN, list_marks, read_mark, write_mark
from icefield.properties.upkeep import GC_ORPHAN_AGE_MS
from icefield.storage.local import LocalStore
from icefield.storage.store import Store, StoredFile
from icefield.upkeep.checks import check_enabled, check_identity, find_proposed, load_newest
from icefield.upkeep.owned import Ownership
from icefield.upkeep.reachable import find_pinned, find_proposed_files, find_reachable
from icefield.upkeep.result import MOST_LOCATIONS, OrphanResult, silent
from icefield.upkeep.searches import note_search
from icefield.upkeep.sweep import check_leases, count_kinds, look_until_settled, sweep

_TEMPORARY_AGE_MS = 3600 * 1000  # a temporary file is in use for as long as one small write takes
_BATCH = 10_000
T = TypeVar("T")


def remove_orphans(
    head: TableHead,
    *,
    older_than_ms: int | None = None,
    unsafe: bool = False,
    dry_run: bool = False,
    most_locations: int = MOST_LOCATIONS,
    progress: Progress = silent,
) -> OrphanResult:
    """Mark the orphan files of a table, and delete those marked earlier whose grace period is over."""
    if most_locations < 0:
        raise InvalidInput(f"most_locations must be 0 or more, not {most_locations}")
    base = head.load()
    check_enabled(base.metadata.properties)
    grace_of(base.metadata.properties)
    age_ms = _age(base, older_than_ms, unsafe=unsafe)
    found = look_until_settled(lambda: _find(head, head.load(), age_ms, dry_run=dry_run))
    orphans, mark = found.orphans, None
    if orphans.num_rows and not dry_run:
        metadata = found.version.metadata
        store, folder = head.backend.store, gc_folder(metadata)
        mark = write_mark(store, head.backend.ambient, folder, metadata.table_uuid, ORPHAN, orphans)
    if not dry_run:
        note_search(head.backend, found.version.metadata)
    return OrphanResult(
        str(head.name),
        dry_run,
        found.listed,
        found.reachable,
        orphans.num_rows,
        orphans.total_bytes,
        count_kinds(orphans),
        found.young,
        found.foreign,
        mark,
        tuple(orphans.slice(0, min(most_locations, orphans.num_rows)).sort_by("location").location.to_pylist()),
        None if dry_run else sweep(head, progress=progress),
    )


@dataclass(frozen=True)
class _Found:
    version: TableVersion
    orphans: TableFiles
    listed: int
    reachable: int
    young: int
    foreign: int


def safe_age_ms(properties: Mapping[str, str]) -> int:
    """Return the least age of orphan files that needs no word of the caller."""
    return max(DAY_MS, GC_ORPHAN_AGE_MS.read(properties))


def _age(base: TableVersion, older_than_ms: int | None, *, unsafe: bool) -> int:
    least = GC_ORPHAN_AGE_MS.read(base.metadata.properties)
    age_ms = least if older_than_ms is None else older_than_ms
    if age_ms < least:
        raise InvalidInput(
            f"cannot remove orphan files that are younger than {least / DAY_MS:g} days: writers of the table rely on "
            f"its property {GC_ORPHAN_AGE_MS.key}",
            hint="Set the property, and wait until writers that began before are done",
        )
    if age_ms < DAY_MS and not unsafe:
        raise InvalidInput(
            f"cannot remove orphan files that are {age_ms / 3_600_000:g} hours old: another engine may be writing them",
            hint="Give at least a day, or unsafe=True if no other engine writes to the table",
        )
    return age_ms


def _find(head: TableHead, base: TableVersion, age_ms: int, *, dry_run: bool) -> _Found:
    backend = head.backend
    store, roots = backend.store, distinct_roots(base)
    folders = gc_folders(base.metadata, store)
    listing = list_files(store, base)
    time_ms = seen_time_ms if dry_run else store_time_ms
    now_ms = time_ms(store, folders[0], backend.ambient)
    leases = check_leases(backend, head.name, base, folders, now_ms, dry_run=dry_run)
    newest = load_newest(head)
    if distinct_roots(newest) != roots:
        raise CatalogError("the table's directories changed while they were listed", hint="Run it again")
    check_identity(backend, head.name, newest)
    proposed = find_proposed(backend.reading, newest, listing.metadata_files, leases.write_ids, now_ms)
    reachable = find_reachable(backend.reading, newest.metadata, newest.location)
    names, paths = fold(listing.files.location), fold(reachable.location)
    _check_listing(names, reachable, paths, _was_there(backend.reading, base, newest, paths), roots)
    held = [find_pinned(backend.reading, leases.readers), find_proposed_files(backend.reading, proposed)]
    marked = [read_mark(store, mark, newest.metadata.table_uuid) for mark in list_marks(store, folders)]
    needed = pa.chunked_array([*paths.chunks, *fold(concat_files([*held, *marked]).location).chunks], pa.string())
    is_free = pc.invert(pc.is_in(names, value_set=needed))
    free = listing.filter(is_free)
    kinds = Ownership(newest.metadata).kinds_of_folded(names.filter(is_free))
    is_candidate = is_known = pc.is_valid(kinds)
    if backend.catalog.metadata_server is not None:
        # A server that writes metadata files removes them, too, and may need those that are in no log.
        is_candidate = pc.and_(is_known, pc.not_equal(pc.fill_null(kinds, -1), int(FileKind.METADATA)))
    candidates, modified = replace(free, files=free.files.replaced({"kind": kinds})).described(store, is_candidate)
    is_old = is_of_age(candidates.kind, modified, now_ms, age_ms)
    orphans = candidates.filter(is_old)
    orphans = orphans.filter(pc.invert(leases.is_written(orphans.location)))
    _check_names(orphans, reachable)
    return _Found(
        newest,
        orphans,
        listing.files.num_rows,
        reachable.num_rows,
        _count(pc.invert(is_old)),
        _count(pc.invert(is_known)),
    )


@dataclass(frozen=True)
class Listing:
    """The files below the directories of a table, without those of the collector itself.

    modified: when each was written; None if only names were listed. metadata_files: those that are metadata files.
    """

    files: TableFiles
    modified: pa.ChunkedArray | None
    metadata_files: Sequence[StoredFile]

    def filter(self, chosen: pa.ChunkedArray) -> "Listing":
        """Return it with the chosen files alone."""
        modified = None if self.modified is None else self.modified.filter(chosen)
        return replace(self, files=self.files.filter(chosen), modified=modified)

    def described(self, store: Store, chosen: pa.ChunkedArray) -> tuple[TableFiles, pa.ChunkedArray]:
        """Return the chosen files with their sizes, and when they were written; without those that are gone."""
        mine = self.filter(chosen)
        files = mine.files
        if mine.modified is not None:
            return files, mine.modified
        assert isinstance(store, LocalStore)
        found = list(store.describe(files.location.to_pylist()))
        there = files.filter(pa.array([each is not None for each in found], pa.bool_()))
        sizes = pa.array([each.size_bytes for each in found if each is not None], pa.int64())
        times = pa.array([each.modified_ms for each in found if each is not None], pa.int64())
        return there.replaced({"size_bytes": sizes}), pa.chunked_array([times])


def list_files(store: Store, version: TableVersion) -> Listing:
    """List the directories of a table; on a local disk by name alone, because most files need no further look."""
    own = gc_folder(version.metadata) + "/"
    if isinstance(store, LocalStore):
        named = chain.from_iterable(store.list_locations(root) for root in distinct_roots(version))
        arrays = [pa.array(batch, pa.string()) for batch in _batches(named)]
        locations = pa.chunked_array(arrays, pa.string())
        locations = locations.filter(pc.invert(pc.starts_with(locations, own)))
        found = store.describe(locations.filter(_is_metadata(locations)).to_pylist())
        files = table_files(locations, FileKind.DATA)
        return Listing(files, None, [file for file in found if file is not None])
    parts, modified, metadata_files = [], [], []
    listed = (file for root in distinct_roots(version) for file in store.list(root))
    for batch in _batches(file for file in listed if not file.location.startswith(own)):
        locations = pa.array([file.location for file in batch], pa.string())
        sizes = pa.array([file.size_bytes for file in batch], pa.int64())
        parts.append(table_files(locations, FileKind.DATA, sizes))
        modified.append(pa.array([file.modified_ms for file in batch], pa.int64()))
        metadata_files += [batch[at] for at in pc.indices_nonzero(_is_metadata(locations)).to_pylist()]
    return Listing(concat_files(parts), pa.chunked_array(modified, pa.int64()), metadata_files)


def _is_metadata(locations: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    return pc.or_(*(pc.ends_with(locations, ending) for ending in METADATA_SUFFIXES))


def _batches(items: Iterator[T]) -> Iterator[list[T]]:
    while batch := list(islice(items, _BATCH)):
        yield batch


def distinct_roots(version: TableVersion) -> list[str]:
    """Return the directories of a table, without those below another one."""
    metadata = version.metadata
    roots = {fold_one(root.rstrip("/")): root for root in roots_of(metadata.location, metadata.properties)}
    return [root for place, root in roots.items() if not any(place.startswith(f"{other}/") for other in roots)]


def is_of_age(kinds: pa.ChunkedArray, modified: pa.ChunkedArray, now_ms: int, age_ms: int) -> pa.ChunkedArray:
    """Return which files are so old that they cannot belong to a running write without a lease."""
    temporary = pc.equal(pc.fill_null(kinds, -1), int(FileKind.TEMPORARY))
    at_least = pc.if_else(temporary, max(age_ms, _TEMPORARY_AGE_MS), age_ms)
    return pc.greater_equal(pc.subtract(pa.scalar(now_ms, pa.int64()), modified), at_least)


def _was_there(
    context: ReadContext, base: TableVersion, newest: TableVersion, paths: pa.ChunkedArray
) -> pa.ChunkedArray | None:
    """Return which files were there before the listing began, when the base was loaded; None for all."""
    if newest.location == base.location:
        return None
    return pc.is_in(paths, value_set=fold(find_reachable(context, base.metadata, base.location).location))


def _check_listing(
    listed: pa.ChunkedArray,
    reachable: TableFiles,
    paths: pa.ChunkedArray,
    was_there: pa.ChunkedArray | None,
    roots: Sequence[str],
) -> None:
    """Refuse a listing that misses a file of the table: then the names of the two are not comparable.

    paths: the locations of the reachable files, folded. was_there: which of them the listing must have; None: all.
    """
    inside = pc.starts_with(paths, fold_one(roots[0].rstrip("/") + "/"))
    for root in roots[1:]:
        inside = pc.or_(inside, pc.starts_with(paths, fold_one(root.rstrip("/") + "/")))
    is_listed = pc.is_in(paths, value_set=listed)
    # Files that left the metadata log may be removed at any time.
    logged = pc.equal(reachable.kind, int(FileKind.METADATA))
    is_missing = pc.and_(pc.and_(inside, pc.invert(is_listed)), pc.invert(logged))
    missing = reachable.filter(is_missing if was_there is None else pc.and_(is_missing, was_there))
    if missing.num_rows:
        raise CatalogError(
            f"cannot look for orphan files: {missing.num_rows:,} files of the table are not in the listing of its "
            f"directories, such as {missing.location[0].as_py()}",
            hint="Check the table; files may be missing, or the store lists them under other names",
        )


def _check_names(orphans: TableFiles, reachable: TableFiles) -> None:
    """Refuse candidates with the name of a file of the table: it may be the same file under another location."""
    names, known = names_of(orphans.location), names_of(reachable.location)
    # Arrow's table of the few names of candidates is small.
    same = orphans.filter(pc.is_in(names, value_set=known.filter(pc.is_in(known, value_set=names))))
    if same.num_rows:
        raise CatalogError(
            f"cannot look for orphan files: {same.location[0].as_py()} has the name of a file that the table refers to "
            "at another location",
            hint="If the lake was moved, run `icefield relocate` first",
        )


def _count(mask: pa.ChunkedArray) -> int:
    return int(pc.sum(pc.cast(mask, pa.int64())).as_py() or 0)
