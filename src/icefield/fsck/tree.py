"""The files of a table as columns: manifest lists, the distinct manifests in them, and the entries of those.

Each manifest is decoded once, whichever snapshots list it. What cannot be read is reported and left out, so that the
rest is checked nevertheless.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icefield.cache.reading import ReadContext
from icefield.codec.manifest.columns import ManifestColumns
from icefield.codec.manifest.decode import MANIFEST_COLUMN
from icefield.codec.manifest.rows import NO_MANIFESTS, ManifestEntries, Manifests
from icefield.codec.manifest.schema import ADDED, DELETED, EXISTING
from icefield.codec.rows import Column, Rows
from icefield.errors import CorruptFile, MissingFile, Unsupported
from icefield.fsck.finding import Check, Findings
from icefield.model.metadata import TableMetadata
from icefield.model.snapshot import Snapshot
from icefield.plan.delete_index import named_data_files
from icefield.plan.entries import batches_of_one_spec, load_entries
from icefield.plan.manifest_list import load_manifests
from icefield.plan.partition.keys import partition_keys
from icefield.types.arrays import Longs, Mask
from icefield.types.metadata_columns import DELETED_FILE

_WANTED = ManifestColumns(
    (
        "status",
        "snapshot_id",
        "sequence_number",
        "content",
        "file_path",
        "file_format",
        "record_count",
        "file_size_in_bytes",
        "first_row_id",
        "referenced_data_file",
        "content_offset",
        "content_size_in_bytes",
    ),
    bounds=(DELETED_FILE.field_id,),
)
_ENTRIES = pa.schema(
    {
        MANIFEST_COLUMN: pa.int32(),
        "status": pa.int32(),
        "snapshot_id": pa.int64(),
        "sequence_number": pa.int64(),
        "content": pa.int32(),
        "file_path": pa.string(),
        "file_format": pa.string(),
        "record_count": pa.int64(),
        "file_size_in_bytes": pa.int64(),
        "first_row_id": pa.int64(),
        "content_offset": pa.int64(),
        "content_size_in_bytes": pa.int64(),
        "names": pa.string(),
        "partition_key": pa.binary(),
    }
)


class TreeEntries(Rows):
    """Entries of all manifests. manifest: its number; names: the only data file that a delete file applies to."""

    manifest: Column
    status: Column
    snapshot_id: Column
    sequence_number: Column
    content: Column
    file_path: Column
    file_format: Column
    record_count: Column
    file_size_in_bytes: Column
    first_row_id: Column
    content_offset: Column
    content_size_in_bytes: Column
    names: Column
    partition_key: Column

    def live(self) -> "TreeEntries":
        """Return the entries that are not deleted."""
        return self.filter(pc.not_equal(self.status, DELETED))


@dataclass(frozen=True)
class Tree:
    """What a version of a table leads to.

    manifests: the distinct ones, by number. lists: the numbers of the manifests of each snapshot whose list was read.
    decoded: which manifests are in `entries`.
    """

    manifests: Manifests
    lists: dict[int, Longs]
    entries: TreeEntries
    decoded: Mask

    def is_whole(self, snapshot_id: int) -> bool:
        """Return whether everything that a snapshot lists was read."""
        return snapshot_id in self.lists and bool(self.decoded[self.lists[snapshot_id]].all())

    def entries_of(self, snapshot_id: int) -> TreeEntries:
        """Return the live entries of a snapshot."""
        listed = pc.is_in(self.entries.manifest, value_set=pa.array(self.lists[snapshot_id], pa.int32()))
        return self.entries.filter(listed).live()

    def sums(self, entries: TreeEntries, values: pa.ChunkedArray | None = None) -> Longs:
        """Return the number of entries, or the sum of a column, for each manifest."""
        sums = np.zeros(self.manifests.num_rows, np.int64)
        np.add.at(sums, entries.manifest.to_numpy(), 1 if values is None else values.to_numpy())
        return sums


@dataclass
class ListedManifests:
    """Collects the distinct manifests of many lists; lists must agree about a manifest."""

    parts: list[Manifests] = field(default_factory=list)
    numbers: dict[str, int] = field(default_factory=dict)
    said: dict[int, tuple[object, ...]] = field(default_factory=dict)
    lists: dict[int, Longs] = field(default_factory=dict)

    def add(self, snapshot: Snapshot, manifests: Manifests, findings: Findings) -> None:
        """Add the manifests of a snapshot."""
        paths = manifests.manifest_path.to_pylist()
        facts = list(zip(*(manifests[name].to_pylist() for name in _SAME_IN_ALL_LISTS), strict=True))
        new: list[int] = []
        numbers: list[int] = []
        for at, path in enumerate(paths):
            number = self.numbers.setdefault(path, len(self.numbers))
            numbers.append(number)
            if number not in self.said:
                self.said[number] = facts[at]
                new.append(at)
            elif self.said[number] != facts[at]:
                findings.add(
                    Check.COUNTS,
                    f"manifest lists disagree about the manifest {path}: that of snapshot {snapshot.snapshot_id} says"
                    f" {_difference(self.said[number], facts[at])}",
                    location=path,
                    snapshot_id=snapshot.snapshot_id,
                )
        self.lists[snapshot.snapshot_id] = np.array(numbers, np.int64)
        if new:
            self.parts.append(manifests.take(new) if len(new) < len(paths) else manifests)

    def together(self) -> Manifests:
        """Return the distinct manifests, by number."""
        return Manifests.concat(self.parts) if self.parts else NO_MANIFESTS


_SAME_IN_ALL_LISTS = ("manifest_length", "sequence_number", "added_snapshot_id", "partition_spec_id", "content")


def load_lists(context: ReadContext, snapshots: Sequence[Snapshot], findings: Findings) -> ListedManifests:
    """Read the manifest lists of snapshots."""
    found = ListedManifests()
    for snapshot in snapshots:
        try:
            manifests = load_manifests(context, snapshot) or NO_MANIFESTS
        except MissingFile as missing:
            findings.add(
                Check.MISSING_FILES,
                f"{missing.location}, which snapshot {snapshot.snapshot_id} needs, does not exist",
                location=missing.location,
                snapshot_id=snapshot.snapshot_id,
            )
        except CorruptFile as corrupt:
            findings.add(
                Check.UNREADABLE_FILES,
                f"snapshot {snapshot.snapshot_id} cannot be read: {corrupt.message}",
                location=corrupt.location,
                snapshot_id=snapshot.snapshot_id,
            )
        except Unsupported as unsupported:
            findings.add(Check.UNREADABLE_FILES, unsupported.message, snapshot_id=snapshot.snapshot_id)
        else:
            found.add(snapshot, manifests, findings)
    return found


def load_tree(
    context: ReadContext, metadata: TableMetadata, listed: ListedManifests, readable: Mask, findings: Findings
) -> Tree:
    """Decode the manifests that can be read. readable: those that are there and have the right size."""
    manifests = listed.together()
    numbers = pa.array(np.arange(manifests.num_rows, dtype=np.int32))
    decoded = np.zeros(manifests.num_rows, np.bool_)
    parts = [TreeEntries(_ENTRIES.empty_table())]
    specs = {spec.spec_id: spec for spec in metadata.specs}
    numbered = manifests.extended({"number": numbers})
    for batch in batches_of_one_spec(numbered.choose(readable)):
        spec = specs.get(batch.partition_spec_id[0].as_py())
        if spec is None:
            for row in batch.to_pylist():
                findings.add(
                    Check.SCHEMAS,
                    f"the manifest {row['manifest_path']} has the partition spec {row['partition_spec_id']}, which the"
                    " table does not have",
                    location=row["manifest_path"],
                )
            continue
        for good, entries in _load(context, batch, findings):
            decoded[good["number"].to_numpy()] = True
            number = good["number"].combine_chunks().take(entries[MANIFEST_COLUMN].combine_chunks())
            whole = entries.replaced({MANIFEST_COLUMN: number}).extended(
                {"names": named_data_files(entries), "partition_key": partition_keys(entries, spec).cast(pa.binary())}
            )
            parts.append(TreeEntries(whole.table.select(_ENTRIES.names).cast(_ENTRIES)))
    return Tree(manifests, listed.lists, TreeEntries.concat(parts), decoded)


def _load(context: ReadContext, batch: Manifests, findings: Findings) -> Iterator[tuple[Manifests, ManifestEntries]]:
    """Yield a batch with its entries, without the manifests that do not decode."""
    while batch.num_rows:
        try:
            yield batch, load_entries(context, batch, _WANTED, (EXISTING, ADDED, DELETED))
            return
        except (CorruptFile, MissingFile) as error:
            is_bad = pc.equal(batch.manifest_path, error.location)
            if not pc.any(is_bad).as_py():
                raise
            gone = isinstance(error, MissingFile)  # since its size was read
            check = Check.MISSING_FILES if gone else Check.UNREADABLE_FILES
            findings.add(check, f"the manifest cannot be read: {error.message}", location=error.location)
            batch = batch.filter(pc.invert(is_bad))


def _difference(one: tuple[object, ...], other: tuple[object, ...]) -> str:
    pairs = zip(_SAME_IN_ALL_LISTS, one, other, strict=True)
    return ", ".join(f"{name} {there} instead of {here}" for name, here, there in pairs if here != there)
