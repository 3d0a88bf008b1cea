"""Which files a version of a table leads to: from its snapshots, statistics and metadata log.

    metadata ─▶ manifest lists ─▶ manifests ─▶ live data and delete files       find_reachable
    removed snapshots ─▶ …, without what the new metadata leads to               find_expired

Only live entries count: a file that a snapshot lists as deleted belongs to the snapshots before it.
Raises MissingFile, CorruptFile; then nothing is known, and nothing may be deleted.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from icefield.cache.reading import ReadContext
from icefield.codec.json.statistics import decode_location
from icefield.codec.manifest.columns import ManifestColumns
from icefield.codec.manifest.list import count_manifests
from icefield.codec.manifest.rows import NO_MANIFESTS, Manifests
from icefield.codec.manifest.schema import DATA
from icefield.commit.operations.tables import TableVersion
from icefield.errors import CorruptFile, MissingFile
from icefield.leases.record import Pin
from icefield.leases.sample import SeenLease
from icefield.marks.files import FileKind, TableFiles, concat_files, fold, table_files
from icefield.model.metadata import TableMetadata
from icefield.model.snapshot import Snapshot
from icefield.plan.entries import LIVE, load_batches
from icefield.plan.manifest_list import load_manifests
from icefield.storage.read_ahead import Wanted

_WANTED = ManifestColumns(
    ("status", "snapshot_id", "sequence_number", "content", "file_path", "file_size_in_bytes"), partition=False
)


def find_reachable(context: ReadContext, metadata: TableMetadata, location: str) -> TableFiles:
    """Return every file that a version of a table leads to, each once; location: of its metadata file."""
    snapshots = list(metadata.snapshots)
    manifests = _load_manifests(context, snapshots).manifests
    logged = [location, *(entry.metadata_file for entry in metadata.metadata_log)]
    return concat_files(
        [
            table_files(list(dict.fromkeys(logged)), FileKind.METADATA),
            _lists(snapshots),
            _statistics(metadata, None),
            _describe_manifests(manifests),
            _live_files(context, manifests),
        ]
    ).unique()


def find_proposed_files(context: ReadContext, proposed: Iterable[TableVersion]) -> TableFiles:
    """Return every file that versions lead to which may have been committed after the newest one."""
    found = []
    for version in proposed:
        try:
            found.append(find_reachable(context, version.metadata, version.location))
        except MissingFile:
            continue  # no committed version misses a file
    return concat_files(found)


def find_expired(context: ReadContext, before: TableMetadata, after: TableMetadata) -> TableFiles:
    """Return the files that the snapshots removed between two versions lead to, and that the later one does not."""
    removed = [s for s in before.snapshots if after.snapshots.find(s.snapshot_id) is None]
    if not removed:
        return concat_files([])
    kept = _load_manifests(context, list(after.snapshots)).manifests
    loaded = _load_manifests(context, removed)
    old = loaded.manifests
    dead = old.filter(pc.invert(pc.is_in(old.manifest_path, value_set=kept.manifest_path)))
    found = concat_files(
        [
            _lists(removed, loaded.list_bytes),
            _statistics(before, {s.snapshot_id for s in removed}),
            _describe_manifests(dead),
            _live_files(context, dead),
        ]
    ).unique()
    still = concat_files([_lists(list(after.snapshots)), _statistics(after, None), _live_files(context, kept)])
    return found.filter(pc.invert(found.is_in(fold(still.location))))


def find_pinned(context: ReadContext, leases: Iterable[SeenLease]) -> TableFiles:
    """Return the files that readers hold; raise CorruptFile for a lease that does not say what it holds.

    Files that are gone already are not missed: see `_left_of`.
    """
    parts: list[TableFiles] = []
    for seen in leases:
        if seen.record is None:
            raise CorruptFile(f"{seen.folder}/leases/{seen.lease}", "the lease cannot be read, so it holds everything")
        pins = [_snapshot_of(pin) for pin in seen.record.pins]
        parts += [_lists(pins), table_files(list(seen.record.files), FileKind.DATA)]
        try:
            manifests = _load_manifests(context, pins).manifests
            parts += [_describe_manifests(manifests), _live_files(context, manifests)]
        except MissingFile:
            parts += _left_of(context, pins)
    return concat_files(parts)


def _left_of(context: ReadContext, pins: Iterable[Snapshot]) -> Iterator[TableFiles]:
    """Yield what is still there of the files of pins.

    A reader takes its lease, and looks then whether its snapshot has expired. If it was too late, its lease may stay
    until it lapses: its response was lost, or the reader died.
    """
    for pin in pins:
        with suppress(MissingFile):
            manifests = _load_manifests(context, [pin]).manifests
            yield _describe_manifests(manifests)
            for at in range(manifests.num_rows):
                with suppress(MissingFile):
                    yield _live_files(context, manifests.slice(at, 1))


def _snapshot_of(pin: Pin) -> Snapshot:
    return Snapshot(
        snapshot_id=pin.snapshot_id,
        sequence_number=0,
        timestamp_ms=0,
        manifest_list=pin.manifest_list,
        manifests=pin.manifests,
    )


def _load_manifests(context: ReadContext, snapshots: Sequence[Snapshot]) -> "_Found":
    """Load the distinct manifests of snapshots.

    A snapshot that only appended repeats the list of its parent. The parent's list is not decoded if its length, which
    the headers of its blocks tell, shows that: then nothing of it is missing in the list of the child.
    """
    found = _Found()
    children = {s.parent_snapshot_id: s for s in snapshots if s.operation == "append"}
    with context.read_ahead(Wanted(s.manifest_list) for s in reversed(snapshots) if s.manifest_list) as near:
        for snapshot in reversed(snapshots):
            data = near.store.read(snapshot.manifest_list) if snapshot.manifest_list else None
            child = children.get(snapshot.snapshot_id)
            if child is None or data is None or not found.includes(snapshot, data, child):
                found.add(snapshot, load_manifests(near, snapshot, data) or NO_MANIFESTS)
            if data is not None:
                found.list_bytes[snapshot.snapshot_id] = len(data)
    return found


@dataclass
class _Found:
    """The distinct manifests of some snapshots.

    counts: how many each snapshot lists. list_bytes: the size of its manifest list. added: how many each added.
    """

    parts: list[Manifests] = field(default_factory=list)
    list_bytes: dict[int, int] = field(default_factory=dict)
    counts: dict[int, int] = field(default_factory=dict)
    added: Counter[int] = field(default_factory=Counter)
    seen: set[str] = field(default_factory=set)

    @property
    def manifests(self) -> Manifests:
        """All of them, each once."""
        return Manifests.concat(self.parts) if self.parts else NO_MANIFESTS

    def add(self, snapshot: Snapshot, manifests: Manifests) -> None:
        """Add the manifests of a snapshot."""
        self.counts[snapshot.snapshot_id] = manifests.num_rows
        paths = manifests.manifest_path.to_pylist()
        new = [at for at, path in enumerate(paths) if path not in self.seen]
        if not new:
            return
        self.seen.update(paths)
        part = manifests.take(new) if len(new) < len(paths) else manifests
        self.added.update(part.added_snapshot_id.to_pylist())
        self.parts.append(part)

    def includes(self, snapshot: Snapshot, data: bytes, child: Snapshot) -> bool:
        """Return whether a child that only appended certainly lists all manifests of a snapshot; data: its list.

        What the child lists and did not add comes from its parent. If that are as many as the parent lists, it is all.
        """
        known = self.counts.get(child.snapshot_id)
        if known is None:
            return False
        count = count_manifests(data, snapshot.manifest_list)
        if known - self.added[child.snapshot_id] != count:
            return False
        self.counts[snapshot.snapshot_id] = count
        return True


def _describe_manifests(manifests: Manifests) -> TableFiles:
    return table_files(
        manifests.manifest_path, FileKind.MANIFEST, manifests.manifest_length, manifests.added_snapshot_id
    )


def _lists(snapshots: Sequence[Snapshot], list_bytes: Mapping[int, int] | None = None) -> TableFiles:
    """Return the manifest lists of snapshots; list_bytes: their sizes by snapshot, where they are known."""
    listed = [s for s in snapshots if s.manifest_list]
    ids = pa.array([s.snapshot_id for s in listed], pa.int64())
    sizes = pa.array([(list_bytes or {}).get(s.snapshot_id) for s in listed], pa.int64())
    return table_files([s.manifest_list for s in listed], FileKind.MANIFEST_LIST, sizes, ids)


def _statistics(metadata: TableMetadata, snapshot_ids: set[int] | None) -> TableFiles:
    """Return the statistics files of some snapshots, or of all."""
    entries = [
        entry
        for entry in (*metadata.statistics, *metadata.partition_statistics)
        if snapshot_ids is None or entry.snapshot_id in snapshot_ids
    ]
    try:
        files = [decode_location(entry) for entry in entries]
    except ValueError as error:
        raise CorruptFile(metadata.location, f"an entry of its statistics is malformed: {error}") from error
    return table_files(
        [file.statistics_path for file in files],
        FileKind.STATISTICS,
        pa.array([file.file_size_in_bytes for file in files], pa.int64()),
        pa.array([entry.snapshot_id for entry in entries], pa.int64()),
    )


def _live_files(context: ReadContext, manifests: Manifests) -> TableFiles:
    """Return the live data and delete files of manifests; one that several list is there several times."""
    parts = []
    for _, entries in load_batches(context, manifests, _WANTED, LIVE):
        data, deletes = (pa.scalar(int(kind), pa.int8()) for kind in (FileKind.DATA, FileKind.DELETES))
        kinds = pc.if_else(pc.equal(entries.content, DATA), data, deletes)
        described = table_files(entries.file_path, FileKind.DATA, entries.file_size_in_bytes, entries.snapshot_id)
        parts.append(described.replaced({"kind": kinds}))
    return concat_files(parts)
