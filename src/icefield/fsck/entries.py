"""Checks of manifest entries: against their manifest lists, and against each other."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icefield.codec.manifest.header import DATA_MANIFEST
from icefield.codec.manifest.schema import ADDED, DATA, DELETED, EXISTING
from icefield.fsck.finding import Check, Findings
from icefield.fsck.tree import Tree
from icefield.model.metadata import TableMetadata
from icefield.model.snapshot import Snapshot

_NOTHING = np.zeros(0, np.int64)
_STATUSES = {"added": ADDED, "existing": EXISTING, "deleted": DELETED}


def check_entries(metadata: TableMetadata, snapshots: Sequence[Snapshot], tree: Tree, findings: Findings) -> None:
    """Check what manifests hold."""
    _check_counts(tree, findings)
    _check_sequence_numbers(snapshots, tree, findings)
    _check_duplicates(snapshots, tree, findings)
    if metadata.has_row_ids:
        _check_row_ids(metadata, tree, findings)


def _check_counts(tree: Tree, findings: Findings) -> None:
    """Compare the counts in manifest lists with the entries; version 1 may omit them."""
    for word, status in _STATUSES.items():
        mine = tree.entries.filter(pc.equal(tree.entries.status, status))
        for what, values in (("files", None), ("rows", mine.record_count)):
            said = tree.manifests[f"{word}_{what}_count"].to_numpy(zero_copy_only=False)
            found = tree.sums(mine, values)
            for at in np.flatnonzero(tree.decoded & ~np.isnan(said.astype(np.float64)) & (said != found)):
                path = tree.manifests.manifest_path[int(at)].as_py()
                findings.add(
                    Check.COUNTS,
                    f"the manifest {path} has {found[at]:,} {word} {what}, but its list says {int(said[at]):,}",
                    location=path,
                )
    holds_data = np.zeros(tree.manifests.num_rows, np.bool_)
    holds_deletes = np.zeros(tree.manifests.num_rows, np.bool_)
    is_data = pc.equal(tree.entries.content, DATA)
    holds_data[tree.entries.filter(is_data).manifest.to_numpy()] = True
    holds_deletes[tree.entries.filter(pc.invert(is_data)).manifest.to_numpy()] = True
    of_data = tree.manifests.content.to_numpy() == DATA_MANIFEST
    for at in np.flatnonzero((of_data & holds_deletes) | (~of_data & holds_data)):
        path = tree.manifests.manifest_path[int(at)].as_py()
        holds, listed = ("delete", "data") if of_data[at] else ("data", "delete")
        findings.add(Check.COUNTS, f"the manifest {path} of {listed} files holds {holds} files", location=path)


def _check_sequence_numbers(snapshots: Sequence[Snapshot], tree: Tree, findings: Findings) -> None:
    of_manifest = tree.manifests.sequence_number.to_numpy()
    owners = tree.entries.manifest.to_numpy()
    numbers = tree.entries.sequence_number.to_numpy()
    for at in np.flatnonzero(numbers > of_manifest[owners]):
        path = tree.entries.file_path[int(at)].as_py()
        findings.add(
            Check.SEQUENCE_NUMBERS,
            f"the file {path} has the sequence number {numbers[at]}, and its manifest {of_manifest[owners[at]]}",
            location=tree.manifests.manifest_path[int(owners[at])].as_py(),
        )
    is_live = tree.entries.status.to_numpy() != DELETED
    least = np.full(tree.manifests.num_rows, np.iinfo(np.int64).max)
    np.minimum.at(least, owners[is_live], numbers[is_live])
    said = tree.manifests.min_sequence_number.to_numpy()
    for at in np.flatnonzero(tree.decoded & (said > least)):
        path = tree.manifests.manifest_path[int(at)].as_py()
        findings.add(
            Check.SEQUENCE_NUMBERS,
            f"the manifest {path} has files of sequence number {least[at]}, but its list says at least {said[at]}",
            location=path,
        )
    for snapshot in snapshots:
        if snapshot.sequence_number == 0 or snapshot.snapshot_id not in tree.lists:
            continue
        listed = tree.lists[snapshot.snapshot_id]
        for number in listed[of_manifest[listed] > snapshot.sequence_number]:
            path = tree.manifests.manifest_path[int(number)].as_py()
            findings.add(
                Check.SEQUENCE_NUMBERS,
                f"the manifest {path} has the sequence number {of_manifest[number]}, more than"
                f" {snapshot.sequence_number} of snapshot {snapshot.snapshot_id}",
                location=path,
                snapshot_id=snapshot.snapshot_id,
            )


def _check_duplicates(snapshots: Sequence[Snapshot], tree: Tree, findings: Findings) -> None:
    """Report files that are live twice in a snapshot; deletion vectors share files, so their offset counts too."""
    for snapshot in snapshots:
        numbers, times = np.unique(tree.lists.get(snapshot.snapshot_id, _NOTHING), return_counts=True)
        for number in numbers[times > 1].tolist():
            path = tree.manifests.manifest_path[number].as_py()
            findings.add(
                Check.DUPLICATES,
                f"snapshot {snapshot.snapshot_id} lists the manifest {path} more than once",
                location=path,
                snapshot_id=snapshot.snapshot_id,
            )
    live = tree.entries.live()
    paths = live.file_path.combine_chunks()
    codes = (paths if isinstance(paths, pa.Array) else pa.concat_arrays(paths.chunks)).dictionary_encode().indices
    _, offsets = np.unique(pc.fill_null(live.content_offset, -1).to_numpy(), return_inverse=True)
    _, files = np.unique(codes.to_numpy() * (offsets.max(initial=0) + 1) + offsets, return_inverse=True)
    candidates = np.flatnonzero(np.bincount(files)[files] > 1) if len(files) else _NOTHING
    if len(candidates) == 0:
        return
    owners, of_file = live.manifest.to_numpy()[candidates], files[candidates]
    reported: set[int] = set()
    for snapshot in reversed(snapshots):
        if snapshot.snapshot_id not in tree.lists:
            continue
        mine = np.isin(owners, tree.lists[snapshot.snapshot_id])
        seen, firsts, times = np.unique(of_file[mine], return_index=True, return_counts=True)
        twice = np.flatnonzero(times > 1)
        for at in twice:
            if int(seen[at]) in reported:
                continue
            reported.add(int(seen[at]))
            path = live.file_path[int(candidates[mine][firsts[at]])].as_py()
            findings.add(
                Check.DUPLICATES,
                f"snapshot {snapshot.snapshot_id} has the file {path} {times[at]} times",
                location=path,
                snapshot_id=snapshot.snapshot_id,
            )


def _check_row_ids(metadata: TableMetadata, tree: Tree, findings: Findings) -> None:
    """Report data files of a branch or tag whose row ids overlap, or are not assigned by the table yet."""
    for name, ref in metadata.refs.items():
        if not tree.is_whole(ref.snapshot_id):
            continue
        files = tree.entries_of(ref.snapshot_id)
        files = files.filter(pc.and_(pc.equal(files.content, DATA), files.first_row_id.is_valid()))
        first = files.first_row_id.to_numpy()
        rows = files.record_count.to_numpy()
        order = np.argsort(first, kind="stable")
        ends = np.maximum.accumulate((first + rows)[order]) if len(order) else first
        overlaps = np.flatnonzero((first[order][1:] < ends[:-1]) & (rows[order][1:] > 0)) + 1
        for at in (*order[overlaps].tolist(), *np.flatnonzero(first + rows > metadata.next_row_id).tolist()):
            path = files.file_path[at].as_py()
            findings.add(
                Check.ROW_IDS,
                f"the file {path} of {name} has the row ids {first[at]} to {first[at] + rows[at] - 1}, which another"
                f" file has too, or which are above the table's next one, {metadata.next_row_id}",
                location=path,
                snapshot_id=ref.snapshot_id,
            )
