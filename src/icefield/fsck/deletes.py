"""Checks of delete files in the heads of branches and tags: what applies to no data file, and what applies wrongly.

(spec: Scan Planning)
"""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icefield.codec.manifest.schema import DATA, EQUALITY_DELETES, PUFFIN
from icefield.fsck.finding import Check, Findings
from icefield.fsck.tree import Tree, TreeEntries
from icefield.model.metadata import TableMetadata
from icefield.types.arrays import Longs, Mask

_NONE = np.iinfo(np.int64).max


def check_deletes(metadata: TableMetadata, tree: Tree, findings: Findings) -> None:
    """Check the delete files of every branch and tag; each fault is reported once."""
    reported: set[tuple[Check, str, str]] = set()
    for snapshot_id in dict.fromkeys(ref.snapshot_id for ref in metadata.refs.values()):
        if tree.is_whole(snapshot_id):
            entries = tree.entries_of(snapshot_id)
            is_data = pc.equal(entries.content, DATA)
            deletes = entries.filter(pc.invert(is_data))
            faults = _Deletes(metadata, tree, entries.filter(is_data), deletes).faults() if deletes.num_rows else ()
            for check, path, message in faults:
                if (check, path, message) not in reported:
                    reported.add((check, path, message))
                    findings.add(check, message, location=path, snapshot_id=snapshot_id)


class _Deletes:
    """The data files and delete files of one snapshot."""

    def __init__(self, metadata: TableMetadata, tree: Tree, data: TreeEntries, deletes: TreeEntries) -> None:
        self._data, self._deletes = data, deletes
        self._specs = tree.manifests.partition_spec_id.to_numpy()
        self._unpartitioned = np.array([s.spec_id for s in metadata.specs if s.is_unpartitioned], np.int64)
        data_groups, delete_groups = self._groups()
        self._numbers = deletes.sequence_number.to_numpy()
        self._is_key = pc.equal(deletes.content, EQUALITY_DELETES).to_numpy()
        self._is_vector = pc.equal(pc.utf8_upper(deletes.file_format), PUFFIN).to_numpy()
        self._has_name = deletes.names.is_valid().to_numpy()
        self._target = pc.fill_null(pc.index_in(deletes.names, value_set=data.file_path), -1).to_numpy()
        self._data_groups, self._delete_groups = data_groups, delete_groups

    def faults(self) -> Iterator[tuple[Check, str, str]]:
        """Yield what is wrong: (check, file, message)."""
        yield from self._dangling()
        yield from self._wrong_vectors()

    def _groups(self) -> tuple[Longs, Longs]:
        """Number the partitions of data files and of delete files, of all specs."""
        tables = [
            pa.table({"spec": self._specs[rows.manifest.to_numpy()], "key": rows.partition_key})
            for rows in (self._data, self._deletes)
        ]
        together = pa.concat_tables(tables)
        codes = together["key"].combine_chunks().dictionary_encode().indices.to_numpy().astype(np.int64)
        groups = codes * (int(self._specs.max(initial=0)) + 1) + together["spec"].to_numpy()
        return groups[: self._data.num_rows], groups[self._data.num_rows :]

    def _oldest_in_partition(self) -> Longs:
        """Return the lowest sequence number of data files in the partition of each delete file."""
        groups, positions = np.unique(self._data_groups, return_inverse=True)
        oldest = np.full(len(groups), _NONE)
        numbers = self._data.sequence_number.to_numpy()
        np.minimum.at(oldest, positions.reshape(-1), numbers)
        at = np.searchsorted(groups, self._delete_groups)
        inside = (at < len(groups)) & (np.append(groups, -1)[np.minimum(at, len(groups))] == self._delete_groups)
        here = np.where(inside, np.append(oldest, _NONE)[np.minimum(at, len(groups))], _NONE)
        specs = self._specs[self._deletes.manifest.to_numpy()]
        is_global = self._is_key & np.isin(specs, self._unpartitioned)
        return np.where(is_global, numbers.min(initial=_NONE), here)

    def _dangling(self) -> Iterator[tuple[Check, str, str]]:
        oldest = self._oldest_in_partition()
        applies = np.where(self._is_key, oldest < self._numbers, oldest <= self._numbers)
        named_is_newer = self._target_numbers() > self._numbers
        missing = (self._target < 0) | (named_is_newer & ~self._is_vector)
        dangling = np.where(self._has_name & ~self._is_key, missing, ~applies)
        yield from self._describe(dangling, Check.DANGLING_DELETES, "applies to no data file")

    def _target_numbers(self) -> Longs:
        numbers: Longs = np.append(self._data.sequence_number.to_numpy(), -1)[self._target]
        return numbers

    def _wrong_vectors(self) -> Iterator[tuple[Check, str, str]]:
        names = self._deletes.names.combine_chunks().dictionary_encode().indices
        codes = pc.fill_null(names, -1).to_numpy()
        vectors = self._is_vector & (codes >= 0)
        times = np.bincount(codes[vectors], minlength=1)
        twice = np.zeros(len(codes), np.bool_)
        twice[vectors] = times[codes[vectors]] > 1
        yield from self._describe(twice, Check.DELETES, "is one of several deletion vectors of a data file")
        there = self._is_vector & (self._target >= 0)
        older = there & (self._target_numbers() > self._numbers)
        yield from self._describe(older, Check.DELETES, "has a deletion vector that is older than its data file")
        groups = np.append(self._data_groups, -1)[self._target]
        elsewhere = self._has_name & ~self._is_key & (self._target >= 0) & (groups != self._delete_groups)
        yield from self._describe(elsewhere, Check.DELETES, "is in another partition than its data file")
        offsets = self._deletes.content_offset.is_null().to_numpy()
        yield from self._describe(self._is_vector & offsets, Check.DELETES, "has a deletion vector without its offset")

    def _describe(self, which: Mask, check: Check, what: str) -> Iterator[tuple[Check, str, str]]:
        for at in np.flatnonzero(which).tolist():
            path, name = self._deletes.file_path[at].as_py(), self._deletes.names[at].as_py()
            yield check, path, f"the delete file {path} {what}{f' ({name})' if name else ''}"
