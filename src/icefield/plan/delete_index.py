"""Which delete files apply to which data files. (spec: Scan Planning)

    deletion vector     the data file that it names, if not newer; the file's position deletes are then void
    position deletes    the data file that they name, or else all of their partition, if not newer
    equality deletes    all files of their partition, or of the table if their spec has no fields, if older

For example, with the partitions x and y:

    delete file   kind        names   partition   sequence number
    p1            positions   a       x           2
    p2            positions   -       y           2
    v1            vector      c       y           4
    e1            equality    -       x           3

    data file     partition   sequence number     delete files that apply
    a             x           1                   p1, e1
    b             x           3                   none (p1 names another file, e1 is not newer)
    c             y           1                   v1 (which replaces p2)
    d             y           2                   p2

The index is built once for a scan from delete manifests; matching a batch of data files is a vectorised look-up, and
the delete files of one data file are listed only when it is read.
Raises CorruptFile, as Iceberg Java does, for two vectors of one data file, for a vector older than its file, and for
a delete file that names a data file of another partition than its own.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icefield.cache.reading import ReadContext
from icefield.codec.manifest.columns import ManifestColumns
from icefield.codec.manifest.rows import ManifestEntries, Manifests
from icefield.codec.manifest.schema import EQUALITY_DELETES, PARQUET, PUFFIN
from icefield.codec.rows import Column, Rows
from icefield.errors import CorruptFile, Unsupported
from icefield.model.metadata import TableMetadata
from icefield.model.partition import PartitionSpec
from icefield.parquet.read.task import DeleteFile, DeleteType
from icefield.plan.entries import ADDED_ONLY, LIVE, load_batches
from icefield.plan.manifest_list import find_spec
from icefield.plan.partition.keys import partition_keys
from icefield.types.arrays import Longs, Mask
from icefield.types.arrow_keys import NOT_FOUND, KeyIndex
from icefield.types.metadata_columns import DELETED_FILE

COLUMNS = ManifestColumns(
    (
        "status",
        "snapshot_id",
        "sequence_number",
        "content",
        "file_path",
        "file_format",
        "record_count",
        "file_size_in_bytes",
        "referenced_data_file",
        "content_offset",
        "content_size_in_bytes",
        "equality_ids",
    ),
    bounds=(DELETED_FILE.field_id,),
)
DELETE_KEYS = pa.struct([("vector", pa.int64()), ("target", pa.int64()), ("group", pa.int64())])
NO_DELETES = ManifestEntries(pa.schema([("file_path", pa.string())]).empty_table())
OF_ANOTHER_PARTITION = "is in another partition than its data file"
NEVER = -1  # older than any sequence number
NO_GROUP = -2  # unlike any group, and unlike NOT_FOUND
EVERYWHERE = 0
BOUNDS = (f"lower.{DELETED_FILE.field_id}", f"upper.{DELETED_FILE.field_id}")


@dataclass(frozen=True)
class Matched:
    """The deletes that apply to a batch of data files.

    keys: where in the index the deletes of each file are, for `DeleteIndex.deletes_of`; null for files without any.
    deleted_rows: how many rows of each file are deleted; null if only reading can determine it.
    """

    keys: pa.StructArray
    deleted_rows: pa.Array


@dataclass(frozen=True)
class ListedDelete:
    """A delete file, or a deletion vector. group: the number of its partition. target: the data file that it names.

    snapshot_id: what added it. size_bytes: of the file; several vectors share one. content_bytes: of the vector. paths:
    the lowest and the highest location of a data file in it, empty if unknown.
    """

    kind: DeleteType
    location: str
    sequence_number: int
    snapshot_id: int
    group: int
    target: str | None
    size_bytes: int
    content_bytes: int
    paths: tuple[str, ...]


class DeleteIndex:
    """The delete files of one snapshot."""

    def __init__(self, entries: "_DeleteEntries", partitions: "_Partitions") -> None:
        self._partitions = partitions
        content = entries.content
        is_key = pc.equal(content, EQUALITY_DELETES).to_numpy()
        is_vector = pc.equal(pc.utf8_upper(entries.file_format), PUFFIN).to_numpy()
        targets = named_data_files(entries)
        has_target = targets.is_valid().to_numpy(zero_copy_only=False)
        groups = entries.group.to_numpy()
        is_position = ~is_key & ~is_vector
        names_target = entries.choose(is_position & has_target)
        self._entries, self._target_names, self._is_vector = entries, targets, is_vector
        self._vectors = entries.choose(is_vector)
        self._vector_targets = KeyIndex([targets.filter(pa.array(is_vector))], self._vectors.num_rows)
        self._targets = KeyIndex([targets.filter(pa.array(is_position & has_target))], names_target.num_rows)
        self._by_target = _Scope(names_target, self._targets.codes)
        self._by_partition = _Scope.of(entries, is_position & ~has_target, groups)
        is_global = entries.is_global.to_numpy()
        self._by_key = _Scope.of(entries, is_key & ~is_global, groups)
        self._everywhere = _Scope.of(entries, is_key & is_global, np.full(entries.num_rows, EVERYWHERE))
        _check_vectors(self._vectors, self._vector_targets)

    def match(self, files: ManifestEntries, spec: PartitionSpec) -> Matched:
        """Look up a batch of data files of one spec."""
        rows, numbers = files.num_rows, files.sequence_number.to_numpy()
        path = files.file_path.combine_chunks()
        vector, target = self._vector_targets.find([path], rows), self._targets.find([path], rows)
        group = self._partitions.find(files, spec)
        has_vector = vector != NOT_FOUND
        by_position = (self._by_target.newest(target) >= numbers) | (self._by_partition.newest(group) >= numbers)
        everywhere = self._everywhere.newest(np.full(rows, EVERYWHERE))
        by_key = np.maximum(self._by_key.newest(group), everywhere) > numbers
        needs_reading = (by_position & ~has_vector) | by_key
        self._check_vectors(vector, numbers, group)
        keys = pa.StructArray.from_arrays(
            [pa.array(vector), pa.array(target), pa.array(group)],
            fields=list(DELETE_KEYS),
            mask=pa.array(~(has_vector | needs_reading)),
        )
        return Matched(keys, pa.array(self._cardinality(vector), mask=needs_reading))

    def deletes_of(self, keys: dict[str, int], sequence_number: int) -> tuple[DeleteFile, ...]:
        """List the deletes that apply to one data file, by its key from `match`."""
        by_key = [
            *self._by_key.since(keys["group"], sequence_number + 1),
            *self._everywhere.since(EVERYWHERE, sequence_number + 1),
        ]
        if keys["vector"] != NOT_FOUND:
            return (_vector(self._vectors.slice(keys["vector"], 1).to_pylist()[0]), *by_key)
        by_target = self._by_target.since(keys["target"], sequence_number, of_group=keys["group"])
        return (*by_target, *self._by_partition.since(keys["group"], sequence_number), *by_key)

    @property
    def delete_files(self) -> frozenset[str]:
        """The locations of all delete files but deletion vectors, whether they apply to a data file or not."""
        scopes = (self._by_target, self._by_partition, self._by_key, self._everywhere)
        return frozenset().union(*(scope.locations for scope in scopes))

    @property
    def vector_targets(self) -> frozenset[str]:
        """The data files that have deletion vectors, whether they are in the snapshot or not."""
        return frozenset(self._vectors.referenced_data_file.to_pylist())

    @property
    def listed(self) -> Iterator["ListedDelete"]:
        """Every delete file and deletion vector of the snapshot."""
        named = self._entries.extended({"target": self._target_names, "is_vector": pa.array(self._is_vector)})
        for row in named.to_pylist():
            kind = DeleteType.VECTOR if row["is_vector"] else DeleteType.POSITIONS
            yield ListedDelete(
                DeleteType.EQUALITY if row["content"] == EQUALITY_DELETES else kind,
                row["file_path"],
                row["sequence_number"],
                row["snapshot_id"],
                row["group"],
                row["target"],
                row["file_size_in_bytes"],
                row["content_size_in_bytes"] or 0,
                tuple((row[name] or b"").decode(errors="replace") for name in BOUNDS),
            )

    def _cardinality(self, vector: Longs) -> Longs:
        counts = np.append(self._vectors.record_count.to_numpy(), 0)
        return counts[vector]  # NOT_FOUND, the last index, has none

    def _check_vectors(self, vector: Longs, numbers: Longs, group: Longs) -> None:
        ages = np.append(self._vectors.sequence_number.to_numpy(), np.iinfo(np.int64).max)[vector]
        groups = np.append(self._vectors.group.to_numpy(), NO_GROUP)[vector]
        older, elsewhere = ages < numbers, (vector != NOT_FOUND) & (groups != group)
        if older.any() or elsewhere.any():
            found = self._vectors.slice(int(vector[np.argmax(older | elsewhere)]), 1)
            why = "is older than its data file" if older.any() else OF_ANOTHER_PARTITION
            raise CorruptFile(found.file_path[0].as_py(), f"a deletion vector in it {why}")


def match_none(files: int) -> Matched:
    """Return the result for data files of a snapshot without deletes."""
    return Matched(pa.nulls(files, DELETE_KEYS), pa.array(np.zeros(files, np.int64)))


def load_delete_index(context: ReadContext, metadata: TableMetadata, manifests: Manifests) -> DeleteIndex | None:
    """Build the index from delete manifests; None if there are none."""
    if manifests.num_rows == 0:
        return None
    parts = [
        (find_spec(metadata, batch.partition_spec_id[0].as_py()), entries)
        for batch, entries in load_batches(context, manifests, COLUMNS, LIVE)
    ]
    return build_delete_index(parts)


def added_deletes(context: ReadContext, metadata: TableMetadata, manifests: Manifests, files: Rows) -> ManifestEntries:
    """Load the delete files that these manifests add and that may apply to one of some planned files.

    Those that name a data file apply to it alone, the others to their partition, or to all files (see above).
    """
    found = [NO_DELETES]
    paths = files["file_path"].combine_chunks()
    for batch, entries in load_batches(context, manifests, COLUMNS, ADDED_ONLY):
        spec = find_spec(metadata, batch.partition_spec_id[0].as_py())
        targets = named_data_files(entries)
        keys = files.filter(pc.equal(files["spec_id"], spec.spec_id))["partition_key"].combine_chunks()
        inside = pc.is_in(partition_keys(entries, spec), value_set=keys)
        is_global = pc.and_(pc.equal(entries.content, EQUALITY_DELETES), spec.is_unpartitioned)
        applies = pc.if_else(targets.is_null(), pc.or_(inside, is_global), pc.is_in(targets, value_set=paths))
        found.append(entries.filter(applies).select(NO_DELETES.column_names))
    return ManifestEntries.concat(found)


def build_delete_index(parts: Sequence[tuple[PartitionSpec, ManifestEntries]]) -> DeleteIndex:
    """Build the index from entries of delete manifests, each table of one spec."""
    partitions = _Partitions()
    specs = {spec.spec_id: spec for spec, _ in parts}
    grouped: list[_DeleteEntries] = []
    for spec_id, spec in specs.items():
        of_spec = [entries for other, entries in parts if other.spec_id == spec_id]
        entries = ManifestEntries.concat(of_spec)
        is_global = pa.repeat(spec.is_unpartitioned, entries.num_rows)
        known = entries.select([*COLUMNS.fields, *BOUNDS])
        known = known.extended({"group": partitions.add(entries, spec), "is_global": is_global})
        grouped.append(_DeleteEntries(known.table))
    together = _DeleteEntries(_DeleteEntries.concat(grouped).table.combine_chunks())
    _refuse_other_formats(together)
    return DeleteIndex(together, partitions)


class _DeleteEntries(ManifestEntries):
    """Delete files, each with the number of its partition, and whether it applies to the whole table."""

    group: Column
    is_global: Column


class _Partitions:
    """Numbers the partitions of delete files."""

    def __init__(self) -> None:
        self._indexes: dict[int, tuple[int, KeyIndex]] = {}
        self._next = 0

    def add(self, entries: ManifestEntries, spec: PartitionSpec) -> pa.Array:
        """Number the partitions of a spec's delete files, all of them at once."""
        index = KeyIndex([partition_keys(entries, spec)], entries.num_rows)
        self._indexes[spec.spec_id] = (self._next, index)
        groups = pa.array(index.codes + self._next)
        self._next += entries.num_rows
        return groups

    def find(self, files: ManifestEntries, spec: PartitionSpec) -> Longs:
        """Return the group of each data file; NO_GROUP if its partition has no deletes."""
        if spec.spec_id not in self._indexes:
            return np.full(files.num_rows, NO_GROUP)
        first, index = self._indexes[spec.spec_id]
        codes = index.find([partition_keys(files, spec)], files.num_rows)
        return np.where(codes == NOT_FOUND, NO_GROUP, codes + first)


class _Scope:
    """Deletes that apply to all files of a group, ordered by group and sequence number."""

    def __init__(self, entries: _DeleteEntries, groups: Longs) -> None:
        numbers = entries.sequence_number.to_numpy()
        order = np.lexsort((numbers, groups))
        self._groups, self._numbers = groups[order], numbers[order]
        self._entries = entries.take(order)

    @classmethod
    def of(cls, entries: _DeleteEntries, chosen: Mask, groups: Longs) -> Self:
        return cls(entries.choose(chosen), groups[chosen])

    @property
    def locations(self) -> frozenset[str]:
        return frozenset(self._entries.file_path.to_pylist())

    def newest(self, groups: Longs) -> Longs:
        """Return the highest sequence number among each group's deletes."""
        if len(self._groups) == 0:
            return np.full(len(groups), NEVER)
        last = np.searchsorted(self._groups, groups, "right") - 1
        return np.where(self._groups[last] == groups, self._numbers[last], NEVER)

    def since(self, group: int, sequence_number: int, *, of_group: int | None = None) -> list[DeleteFile]:
        """List a group's deletes of this sequence number or newer; they must be in the partition `of_group`."""
        start, end = np.searchsorted(self._groups, group), np.searchsorted(self._groups, group, "right")
        start += np.searchsorted(self._numbers[start:end], sequence_number)
        rows = self._entries.slice(int(start), int(end - start)).to_pylist()
        for row in rows:
            if of_group is not None and row["group"] != of_group:
                raise CorruptFile(row["file_path"], f"it names a data file, but {OF_ANOTHER_PARTITION}")
        return [_delete_file(row) for row in rows]


def named_data_files(entries: ManifestEntries) -> pa.Array:
    """Return the single data file that each delete file names, if any: by its reference, or by equal bounds."""
    named = entries.referenced_data_file.combine_chunks()
    lower, upper = (entries[name].combine_chunks() for name in BOUNDS)
    only = pc.if_else(pc.equal(lower, upper), lower, None)
    # Bounds of paths are not truncated (the spec requires it); a truncated lower bound would equal no upper one.
    return pc.coalesce(named, only.cast(pa.string()))


def _check_vectors(vectors: ManifestEntries, targets: KeyIndex) -> None:
    if len(np.unique(targets.codes)) != vectors.num_rows:
        twice = int(np.argmax(np.bincount(targets.codes)))
        found = vectors.choose(targets.codes == twice)
        path = found.referenced_data_file[0].as_py()
        raise CorruptFile(found.file_path[0].as_py(), f"the data file {path} has two deletion vectors")


def _refuse_other_formats(entries: ManifestEntries) -> None:
    known = pc.is_in(pc.utf8_upper(entries.file_format), value_set=pa.array([PUFFIN, PARQUET]))
    others = entries.filter(pc.invert(known))
    if others.num_rows:
        path, word = (others[name][0].as_py() for name in ("file_path", "file_format"))
        raise Unsupported(f"{path} is a delete file in {word}; icefield reads Parquet")


def _delete_file(row: dict[str, Any]) -> DeleteFile:
    is_key = row["content"] == EQUALITY_DELETES
    return DeleteFile(
        DeleteType.EQUALITY if is_key else DeleteType.POSITIONS,
        row["file_path"],
        tuple(row["equality_ids"] or ()) if is_key else (),
        record_count=row["record_count"],
        file_size_bytes=row["file_size_in_bytes"],
    )


def _vector(row: dict[str, Any]) -> DeleteFile:
    offset, size = row["content_offset"], row["content_size_in_bytes"]
    if offset is None or size is None:
        raise CorruptFile(row["file_path"], "the manifest has no offset of the deletion vector")
    whole = row["file_size_in_bytes"]
    return DeleteFile(DeleteType.VECTOR, row["file_path"], (), offset, size, row["record_count"], whole)
