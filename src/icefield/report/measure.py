"""Measure what a table stores: list its directories, and compare with what its versions lead to.

Nothing is locked; a table that changes while it is measured may have files in the wrong share, for the next report to
correct. Raises MissingFile and CorruptFile: then `fsck` says what is wrong.
"""

import math
from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from icefield.cache.reading import ReadContext
from icefield.codec.manifest.columns import ManifestColumns
from icefield.codec.manifest.schema import EQUALITY_DELETES
from icefield.commit.actions.expire import ExpireSnapshots
from icefield.commit.relocate import Explain, Progress
from icefield.commit.validate.ownership import roots_of
from icefield.compaction.compact import delete_rows
from icefield.compaction.options import CompactionRequest
from icefield.compaction.plan import plan_compaction
from icefield.dml.head import TableHead
from icefield.errors import IcefieldError, InvalidInput, NoSuchTable
from icefield.expr.bind.bound import TRUE
from icefield.fsck.stored import list_sizes
from icefield.leases.folder import gc_folder, gc_folders
from icefield.leases.sample import held, sample_leases
from icefield.marks.files import TableFiles, concat_files, fold
from icefield.marks.mark import list_marks, read_unless_done
from icefield.model.metadata import TableMetadata
from icefield.plan.entries import LIVE, load_batches
from icefield.plan.manifest_list import load_manifest_list
from icefield.plan.plan import plan_scan
from icefield.plan.versions import resolve_version
from icefield.properties.table import GC_ENABLED, MAX_SNAPSHOT_AGE_MS, MIN_SNAPSHOTS_TO_KEEP
from icefield.properties.upkeep import GC_GRACE_MS, GC_ORPHAN_AGE_MS
from icefield.report.result import Debt, Retention, Share, StorageReport, sum_up
from icefield.upkeep.orphans import is_of_age
from icefield.upkeep.owned import Ownership
from icefield.upkeep.reachable import find_expired, find_reachable
from icefield.upkeep.sweep import LeaseCheck

_DELETES = ManifestColumns(("status", "snapshot_id", "sequence_number", "content", "record_count"), partition=False)


def measure_table(head: TableHead, price: float | None = None) -> StorageReport:
    """Report on one table. price: of storing a gigabyte for a month."""
    backend, version = head.backend, head.load()
    context, metadata = backend.reading, version.metadata
    listed = list_sizes(backend.store, roots_of(metadata.location, metadata.properties))
    # Without what upkeep records there.
    listed = listed.filter(pc.invert(pc.starts_with(listed["location"], gc_folder(metadata) + "/")))
    everything = find_reachable(context, metadata, version.location)
    live = find_reachable(context, _only_heads(metadata), version.location)
    expired = _expirable(context, metadata, backend.ambient.now_ms())
    marks = list_marks(backend.store, gc_folders(metadata, backend.store))
    read = [read_unless_done(backend.store, mark, metadata.table_uuid) for mark in marks]
    marked = concat_files([files for files in read if files is not None])
    leases = LeaseCheck(held(sample_leases(backend.store, gc_folders(metadata, backend.store))))
    names = fold(listed["location"])
    is_live, is_needed, is_marked = (pc.is_in(names, value_set=fold(f.location)) for f in (live, everything, marked))
    kinds = Ownership(metadata).kinds_of_folded(names)
    is_own = pc.is_valid(kinds)
    is_old = pc.and_not(is_needed, is_live)
    is_waiting = pc.and_not(is_marked, is_needed)
    is_free = pc.invert(pc.or_(is_needed, is_marked))
    # By the clock of this machine: nothing is deleted for it.
    age_ms = GC_ORPHAN_AGE_MS.read(metadata.properties)
    is_old_enough = is_of_age(kinds, listed["modified_ms"], backend.ambient.now_ms(), age_ms)
    is_young = pc.or_(pc.invert(is_old_enough), leases.is_written(listed["location"]))
    is_unreferenced = pc.and_(is_free, is_own)
    return StorageReport(
        str(head.name),
        live=_share(listed, is_live) + _elsewhere(live, names),
        history=_share(listed, is_old) + _elsewhere(_without(everything, live), names),
        expirable=_share(listed, pc.is_in(names, value_set=fold(expired.location))),
        waiting=_share(listed, is_waiting),
        young=_share(listed, pc.and_(is_unreferenced, is_young)),
        orphans=_share(listed, pc.and_not(is_unreferenced, is_young)),
        foreign=_share(listed, pc.and_not(is_free, is_own)),
        debt=measure_debt(context, metadata, backend.ambient.now_ms()),
        retention=_retention(metadata),
        price=price,
    )


def measure_lake(
    heads: Sequence[TableHead],
    explain: Explain,
    price: float | None = None,
    *,
    are_named: bool,
    progress: Progress = lambda _name: None,
) -> StorageReport:
    """Report on several tables, and the sums. A table that cannot be measured does not hide the others.

    explain: returns the error to report instead of one that was raised. are_named: the caller named the tables, so that
    one that does not exist is an error. progress: called with the name of each table that is measured.
    """
    found = []
    for head in heads:
        try:
            found.append(measure_table(head, price))
        except NoSuchTable:  # else it was dropped since the tables were listed
            if are_named:
                raise
        except IcefieldError as error:
            found.append(StorageReport(str(head.name), price=price, error=str(explain(error))))
        progress(str(head.name))
    return sum_up("total", found, price)


def _retention(metadata: TableMetadata) -> Retention:
    known = (MAX_SNAPSHOT_AGE_MS, MIN_SNAPSHOTS_TO_KEEP, GC_GRACE_MS)
    return Retention(*(each.read(metadata.properties) for each in known))


def check_price(price: float | None) -> float | None:
    """Refuse a price that is not one."""
    if price is not None and not (math.isfinite(price) and price >= 0):
        raise InvalidInput(f"the price of a gigabyte cannot be {price}", hint="Give it as a number, such as 0.023")
    return price


def _share(listed: pa.Table, chosen: pa.ChunkedArray) -> Share:
    mine = listed.filter(chosen)
    return Share(mine.num_rows, int(pc.sum(mine["size_bytes"]).as_py() or 0))


def _elsewhere(files: TableFiles, listed: pa.ChunkedArray) -> Share:
    """Count files outside the table's directories, with the sizes that metadata says; lists and logs have none."""
    others = files.filter(pc.and_not(files.size_bytes.is_valid(), files.is_in(listed)))
    return Share(others.num_rows, others.total_bytes)


def _without(files: TableFiles, others: TableFiles) -> TableFiles:
    return files.filter(pc.invert(files.is_in(fold(others.location))))


def _only_heads(metadata: TableMetadata) -> TableMetadata:
    """Return a version without the snapshots that no branch or tag points at, and without its log."""
    heads = {ref.snapshot_id for ref in metadata.refs.values()}
    old = frozenset(s.snapshot_id for s in metadata.snapshots if s.snapshot_id not in heads)
    return replace(_without_snapshots(metadata, old), metadata_log=())


def _without_snapshots(metadata: TableMetadata, gone: frozenset[int]) -> TableMetadata:
    """Return a version without some snapshots and their statistics."""
    return replace(
        metadata,
        snapshots=metadata.snapshots.without(gone),
        statistics=tuple(each for each in metadata.statistics if each.snapshot_id not in gone),
        partition_statistics=tuple(each for each in metadata.partition_statistics if each.snapshot_id not in gone),
    )


def _expirable(context: ReadContext, metadata: TableMetadata, now_ms: int) -> TableFiles:
    return find_expired(context, metadata, _without_snapshots(metadata, _expired_ids(metadata, now_ms)))


def _expired_ids(metadata: TableMetadata, now_ms: int) -> frozenset[int]:
    if not GC_ENABLED.read(metadata.properties):
        return frozenset()
    return ExpireSnapshots().find(metadata, now_ms).snapshot_ids


def measure_debt(context: ReadContext, metadata: TableMetadata, now_ms: int) -> Debt:
    """Describe the data and delete files of `main`."""
    version = resolve_version(metadata, None)
    known = Debt(snapshots=len(metadata.snapshots), expired_snapshots=len(_expired_ids(metadata, now_ms)))
    if version.snapshot is None:
        return known
    scan = plan_scan(context, metadata, version, TRUE)
    files, thresholds = scan.files, CompactionRequest().thresholds(metadata)
    plan = plan_compaction(files, delete_rows(scan), thresholds, metadata.spec.spec_id)
    made = sum(max(1, math.ceil(group.total_bytes / thresholds.target_bytes)) for group in plan.groups)
    small = files.file_size_in_bytes.filter(pc.less(files.file_size_in_bytes, thresholds.min_file_bytes))
    rows = int(pc.sum(files.record_count).as_py() or 0)
    deletes = count_deletes(context, metadata)
    return replace(
        known,
        data_files=files.num_rows,
        small_files=len(small),
        small_bytes=_rows(small),
        files_to_rewrite=plan.files_to_rewrite,
        bytes_to_rewrite=plan.bytes_to_rewrite,
        files_after=plan.files_good + made,
        delete_files=deletes.delete_files,
        deleted_rows=deletes.deleted_rows,
        deleted_bytes=int(files.total_bytes * min(deletes.deleted_rows, rows) / rows) if rows else 0,
        equality_deletes=deletes.equality_deletes,
        equality_delete_files=deletes.equality_delete_files,
    )


def count_deletes(context: ReadContext, metadata: TableMetadata) -> Debt:
    """Count the deletes of `main`, and nothing else."""
    listed = load_manifest_list(context, resolve_version(metadata, None).snapshot)
    if listed is None:
        return Debt()
    deletes = [entries for _, entries in load_batches(context, listed.live_deletes, _DELETES, LIVE)]
    by_key = [each.filter(pc.equal(each.content, EQUALITY_DELETES)) for each in deletes]
    keys = sum(_rows(each.record_count) for each in by_key)
    return Debt(
        delete_files=sum(each.num_rows for each in deletes),
        deleted_rows=sum(_rows(each.record_count) for each in deletes) - keys,
        equality_deletes=keys,
        equality_delete_files=sum(each.num_rows for each in by_key),
    )


def _rows(column: pa.ChunkedArray) -> int:
    return int(pc.sum(column).as_py() or 0)
