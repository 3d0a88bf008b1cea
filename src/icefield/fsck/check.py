"""Check a table: its metadata, the files that it leads to, and what they say of each other.

    metadata.json ─▶ versions.check_metadata
    manifest lists ─▶ manifests ─▶ entries ─▶ data and delete files
                                    entries.check_entries, deletes.check_deletes
    stored.StoredSizes for every file; footers.check_footers on request

Readers and writers go on. A file that a concurrent expiry removed is not missing: if the table has moved while it was
checked and files are missing, the newest version is checked instead.
Raises StorageError and CatalogError; faults of the table are findings.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icefield.backend import Backend
from icefield.cache.reading import ReadContext
from icefield.codec.json.statistics import decode_location
from icefield.codec.manifest.schema import DATA
from icefield.commit.operations.choose import operations_of
from icefield.commit.operations.tables import TableVersion
from icefield.commit.relocate import Progress
from icefield.commit.validate.ownership import claim_of, guard_of, roots_of
from icefield.dml.head import LiveHead, TableHead
from icefield.errors import (
    AlreadyExists,
    CorruptFile,
    IcefieldError,
    InvalidInput,
    MissingFile,
    NoSuchTable,
    Unsupported,
)
from icefield.fsck.deletes import check_deletes
from icefield.fsck.entries import check_entries
from icefield.fsck.finding import Check, Findings, LakeFsck, TableFsck
from icefield.fsck.footers import check_footers
from icefield.fsck.pointer import check_newest
from icefield.fsck.repair import StatisticsRef, repair
from icefield.fsck.stored import ExpectedFiles, StoredSizes
from icefield.fsck.summaries import check_summaries
from icefield.fsck.together import check_together
from icefield.fsck.tree import Tree, TreeEntries, load_lists, load_tree
from icefield.fsck.versions import check_metadata
from icefield.model.metadata import TableMetadata
from icefield.model.names import TableName, parse_table_name
from icefield.model.snapshot import Snapshot

MOST_TRIES = 3


@dataclass(frozen=True)
class FsckOptions:
    """What to check, and whether to repair it. drop_files: missing data files to remove from the table."""

    deep: bool = False
    repair: bool = False
    dry_run: bool = False
    drop_files: Sequence[str] = ()

    def __post_init__(self) -> None:
        if not self.repair and (self.dry_run or self.drop_files):
            raise InvalidInput("dry_run and drop_files are for repairs", hint="Set repair=True (--repair)")


def fsck_table(head: TableHead, options: FsckOptions) -> TableFsck:
    """Check one table, and repair it if that is asked for."""
    backend, name = head.backend, head.name
    findings = Findings()
    version = _load(backend, name, findings)
    if version is None:
        return TableFsck(str(name), findings=tuple(findings), counts=findings.by_name())
    found = _check_version(backend, name, version, options)
    for _ in range(MOST_TRIES):
        newest = operations_of(backend).load(name, version) if Check.MISSING_FILES.value in found.counts else version
        if newest.location == version.location:
            break
        version = newest
        found = _check_version(backend, name, version, options)
    if not options.repair:
        return found
    # On the version that was checked.
    head = LiveHead(backend, name, version)
    named = _statistics(version.metadata, Findings())
    repairs = repair(head, found.findings, named, options.drop_files, dry_run=options.dry_run)
    return replace(found, repairs=tuple(repairs), is_dry_run=options.dry_run)


@dataclass(frozen=True)
class LakeTables:
    """The tables of a lake to check. are_named: by the caller, so that each must exist.

    explain: returns what a table is not opened for, in the words of the lake.
    """

    names: Sequence[TableName]
    are_named: bool
    explain: Callable[[IcefieldError], IcefieldError]


def fsck_lake(
    backend: Backend,
    tables: LakeTables,
    options: FsckOptions,
    *,
    together: bool = False,
    progress: Progress = lambda name: None,
) -> LakeFsck:
    """Check several tables. together: they are changed together, so each must have the changes of the others."""
    results: list[TableFsck] = []
    findings = Findings()
    for name in tables.names:
        try:
            results.append(fsck_table(LiveHead(backend, name), options))
        except NoSuchTable:  # else it was dropped since the tables were listed
            if tables.are_named:
                raise
            continue
        except (CorruptFile, InvalidInput) as error:
            results.append(_unchecked(name, tables.explain(error)))
        progress(str(name))
    if together:
        opened = [parse_table_name(result.table) for result in results if result.metadata_location]
        check_together({str(name): operations_of(backend).load(name).metadata for name in opened}, findings)
    return LakeFsck(results, tuple(findings))


def _unchecked(name: TableName, error: IcefieldError) -> TableFsck:
    """Return what is said of a table that cannot be checked, or repaired, so that the others are."""
    findings = Findings()
    findings.add(Check.POINTER, f"{name} cannot be checked: {error}")
    return TableFsck(str(name), findings=tuple(findings), counts=findings.by_name())


def _load(backend: Backend, name: TableName, findings: Findings) -> TableVersion | None:
    try:
        return operations_of(backend).load(name)
    except (MissingFile, CorruptFile) as error:
        findings.add(Check.POINTER, f"{name} cannot be opened: {error.message}", location=error.location)
    except Unsupported as error:
        findings.add(Check.POINTER, f"{name} cannot be opened: {error.message}")
    return None


def _check_version(backend: Backend, name: TableName, version: TableVersion, options: FsckOptions) -> TableFsck:
    metadata, findings = version.metadata, Findings()
    snapshots = check_metadata(metadata, findings)
    sizes = StoredSizes(backend.store, roots_of(metadata.location, metadata.properties))
    tree = _check_metadata_files(backend, metadata, snapshots, sizes, findings)
    check_entries(metadata, snapshots, tree, findings)
    check_summaries(snapshots, tree, findings)
    check_deletes(metadata, tree, findings)
    live = tree.entries.live()
    files = _distinct(live)
    readable = sizes.check(_expected(files), findings)
    if options.deep:
        check_footers(backend.store, _vectors_and_files(live, files.file_path.filter(readable)), findings)
    check_newest(backend.store, version, backend.ambient.now_ms(), findings)
    _check_owner(backend, name, version, findings)
    return TableFsck(
        table=str(name),
        metadata_location=version.location,
        findings=tuple(findings),
        counts=findings.by_name(),
        snapshots=len(snapshots),
        manifests=tree.manifests.num_rows,
        files=files.num_rows,
        bytes=int(pc.sum(files.file_size_in_bytes).as_py() or 0),
    )


def _check_metadata_files(
    backend: Backend, metadata: TableMetadata, snapshots: Sequence[Snapshot], sizes: StoredSizes, findings: Findings
) -> Tree:
    # Not through the cache, which may have what is no longer in the store.
    context = ReadContext(backend.store)
    listed = load_lists(context, snapshots, findings)
    manifests = listed.together()
    readable = sizes.check(
        ExpectedFiles(
            pa.table(
                {
                    "location": manifests.manifest_path,
                    "size_bytes": manifests.manifest_length,
                    "what": pa.repeat("manifest", manifests.num_rows),
                }
            )
        ),
        findings,
    )
    statistics = _statistics(metadata, findings)
    expected = {
        "location": pa.array([each.location for each in statistics], pa.string()),
        "size_bytes": pa.array([each.size_bytes for each in statistics], pa.int64()),
        "what": pa.repeat("statistics file", len(statistics)),
    }
    sizes.check(ExpectedFiles(pa.table(expected)), findings)
    return load_tree(context, metadata, listed, readable.to_numpy(zero_copy_only=False), findings)


def _distinct(live: TreeEntries) -> TreeEntries:
    """Return one entry of each file."""
    _, first = np.unique(live.file_path.combine_chunks().dictionary_encode().indices.to_numpy(), return_index=True)
    return live.take(np.sort(first))


def _vectors_and_files(live: TreeEntries, readable: pa.ChunkedArray) -> TreeEntries:
    """Return one entry of each readable file and of each deletion vector, several of which share a file."""
    mine = live.filter(pc.is_in(live.file_path, value_set=readable))
    paths = mine.file_path.combine_chunks().dictionary_encode().indices.to_numpy()
    places = np.stack([paths, pc.fill_null(mine.content_offset, -1).to_numpy()])
    _, first = np.unique(places, axis=1, return_index=True)
    return mine.take(np.sort(first))


def _expected(files: TreeEntries) -> ExpectedFiles:
    what = pc.if_else(pc.equal(files.content, DATA), "data file", "delete file")
    return ExpectedFiles(pa.table({"location": files.file_path, "size_bytes": files.file_size_in_bytes, "what": what}))


def _statistics(metadata: TableMetadata, findings: Findings) -> list[StatisticsRef]:
    found = []
    for entries, of_partitions in ((metadata.statistics, False), (metadata.partition_statistics, True)):
        for entry in entries:
            try:
                file = decode_location(entry)
            except ValueError as error:
                findings.add(
                    Check.UNREADABLE_FILES,
                    f"the statistics of snapshot {entry.snapshot_id} do not say where their file is: {error}",
                    snapshot_id=entry.snapshot_id,
                )
                continue
            size = file.file_size_in_bytes
            found.append(StatisticsRef(entry.snapshot_id, file.statistics_path, size, of_partitions))
    return found


def _check_owner(backend: Backend, name: TableName, version: TableVersion, findings: Findings) -> None:
    if backend.catalog.metadata_server is not None:
        return  # the server assigns locations, and does not list those of all tables
    metadata = version.metadata
    claim = claim_of(metadata.table_uuid, metadata.location, metadata.properties)
    try:
        guard_of(backend.store, name, claim)(backend.catalog.entries())
    except (AlreadyExists, InvalidInput) as error:
        findings.add(Check.OWNERS, f"{name} is not the only owner of its files: {error.message}")
