"""Rewrite the metadata of a lake that was moved or copied, so that it names the new location.

Iceberg's metadata names every file by its full location. After a move, every file that names other files is rewritten
next to the old one, under a new name: position delete files and Puffin files of deletion vectors, manifests, manifest
lists, metadata. This covers all snapshots of the current metadata; data files are not touched. Then the pointers are
swapped, atomically if the catalog supports it, so that the lake is unchanged until the last step. The names of new
files are derived from the old ones: an interrupted run is finished by the next one, and a repeated run finds nothing to
do.

Raises InvalidInput (the former location is unknown), MissingFile, CorruptFile, and errors of catalog and store.
"""

import io
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, TypeVar

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from icefield.arguments import whole_number
from icefield.catalog.catalog import Catalog, Entry, Kind, PointerSwap
from icefield.codec.avro.container import parse_header
from icefield.codec.json.keys import Json, inflate_json
from icefield.codec.json.metadata import decode_metadata
from icefield.codec.manifest.columns import ALL
from icefield.codec.manifest.decode import decode_manifest
from icefield.codec.manifest.encode import encode_manifest
from icefield.codec.manifest.header import decode_manifest_header
from icefield.codec.manifest.list import (
    ManifestListHeader,
    check_list_of,
    decode_manifest_list,
    encode_manifest_list,
)
from icefield.codec.manifest.rows import ManifestEntries
from icefield.codec.manifest.schema import POSITION_DELETES
from icefield.codec.puffin.deletion_vector import REFERENCED_DATA_FILE
from icefield.codec.puffin.puffin import Blob, decode_blob, decode_footer, encode_puffin
from icefield.codec.rows import Rows
from icefield.commit.load import read_metadata_file
from icefield.commit.validate.ownership import ROOT_PROPERTIES
from icefield.errors import FileAlreadyExists, IcefieldError, InvalidInput, LocationRefused, MissingFile
from icefield.model.metadata import TableMetadata
from icefield.model.names import TableName
from icefield.model.snapshot import Snapshot
from icefield.plan.manifest_list import find_spec
from icefield.storage.location import is_inside, join_location, parse_location
from icefield.storage.store import Store
from icefield.types.metadata_columns import DELETED_FILE

AnyRows = TypeVar("AnyRows", bound=Rows)
Progress = Callable[[str], None]
Explain = Callable[[IcefieldError], IcefieldError]


@dataclass(frozen=True)
class Relocation:
    """What is to be rewritten, or was. files: how many new files were written; None in a plan."""

    old: str
    new: str
    entries: Sequence[str]
    files: int | None = None


def plan_relocation(catalog: Catalog, store: Store, warehouse: str, old: str | None = None) -> Relocation:
    """Find the entries that point outside the warehouse to files that are now in it, and the former location."""
    outside = {n: e for n, e in catalog.entries().items() if not is_inside(e.pointer, warehouse)}
    if old is not None and outside:
        outside = {n: e for n, e in outside.items() if is_inside(e.pointer, old)} or outside
    found = {_old_root(store, warehouse, entry.pointer, old): name for name, entry in sorted(outside.items())}
    if len(found) > 1:
        former = ", ".join(sorted(found))
        raise InvalidInput(
            f"the tables of {warehouse} have several former locations: {former}", hint="Name one of them"
        )
    root = next(iter(found), old or warehouse)
    return Relocation(root, warehouse, [str(name) for name in sorted(outside)])


def relocate(catalog: Catalog, store: Store, plan: Relocation, progress: Progress = lambda name: None) -> Relocation:
    """Rewrite the files of a plan, and swap the pointers."""
    entries = catalog.entries()
    mover = _Mover(store, plan.old, plan.new)
    swaps: list[PointerSwap] = []
    for name, entry in sorted(entries.items()):
        if str(name) in plan.entries:
            swaps.append(_moved(mover, name, entry))
            progress(str(name))
    for some in [swaps] if catalog.swaps_many else [[swap] for swap in swaps]:
        catalog.swap(some)
    return Relocation(plan.old, plan.new, plan.entries, mover.written)


def _old_root(store: Store, warehouse: str, pointer: str, old: str | None) -> str:
    """Return the location of the warehouse at the time a pointer was written."""
    parsed = parse_location(pointer)
    names = parsed.path.split("/")
    for at in range(1, len(names)):
        root = f"{parsed.scheme}://{parsed.authority}{'/'.join(names[:at])}"
        if old is not None and str(parse_location(old)).rstrip("/") != root:
            continue
        if _exists(store, join_location(warehouse, *names[at:])):
            return root
    raise InvalidInput(
        f"{pointer} is not below {warehouse}, so the former location of the lake cannot be determined",
        hint="Copy the whole directory of the lake, or name its former location",
    )


def _exists(store: Store, location: str) -> bool:
    try:
        store.size(location)
    except (MissingFile, LocationRefused):
        return False
    return True


def _moved(mover: "_Mover", name: TableName, entry: Entry) -> PointerSwap:
    rewrite = mover.view if entry.kind is Kind.VIEW else mover.table
    return PointerSwap(name, entry.pointer, rewrite(entry.pointer), entry.kind)


@dataclass
class _Mover:
    """Rewrites files; each is rewritten once, even if many snapshots name it."""

    store: Store
    old: str
    new: str
    written: int = 0
    _known: dict[str, tuple[str, int]] = field(default_factory=dict)

    def table(self, pointer: str) -> str:
        here = self.map(pointer)
        data = inflate_json(read_metadata_file(self.store, here), here)
        metadata = decode_metadata(data, here)
        document: Json = msgspec.json.decode(data)
        for snapshot, listed in zip(metadata.snapshots, document.get("snapshots") or (), strict=True):
            if snapshot.manifest_list:
                listed["manifest-list"] = self._manifest_list(snapshot, metadata)
            elif snapshot.manifests:
                listed["manifests"] = [self._manifest(at, metadata)[0] for at in snapshot.manifests]
        for key in ("statistics", "partition-statistics"):
            for each in document.get(key) or ():
                each["statistics-path"] = self.map(each["statistics-path"])
        for each in document.get("metadata-log") or ():
            each["metadata-file"] = self.map(each["metadata-file"])
        return self._metadata(here, document)

    def view(self, pointer: str) -> str:
        here = self.map(pointer)
        return self._metadata(here, msgspec.json.decode(inflate_json(read_metadata_file(self.store, here), here)))

    def map(self, location: str) -> str:
        """Return the current location of a file; files outside the lake were not moved."""
        if not is_inside(location, self.old):
            return location
        parsed, root = parse_location(location), parse_location(self.old)
        inner = parsed.path.removeprefix(root.path).strip("/")
        return join_location(self.new, inner) if inner else self.new

    def _metadata(self, here: str, document: Json) -> str:
        document["location"] = self.map(document["location"])
        properties = document.get("properties") or {}
        for key in ROOT_PROPERTIES:
            if key in properties:
                properties[key] = self.map(properties[key])
        number = here.rsplit("/", 1)[1].partition("-")[0].lstrip("v").partition(".")[0]
        version = 0 if (known := whole_number(number)) is None else known + 1
        place = f"{here.rsplit('/', 1)[0]}/{version:05d}-{self._id(here)}.metadata.json"
        self._put(place, msgspec.json.encode(document))
        return place

    def _manifest_list(self, snapshot: Snapshot, metadata: TableMetadata) -> str:
        here = self.map(snapshot.manifest_list)
        if here not in self._known:
            data = self.store.read(here)
            version = int(parse_header(data, here).metadata.get("format-version", b"1"))
            check_list_of(snapshot.snapshot_id, data, here)
            rows = decode_manifest_list(data, here)
            moved = [self._manifest(at, metadata) for at in rows.manifest_path.to_pylist()]
            rows = _with(rows, "manifest_path", [location for location, _ in moved])
            rows = _with(rows, "manifest_length", [length for _, length in moved])
            header = ManifestListHeader(
                snapshot.snapshot_id,
                snapshot.parent_snapshot_id,
                snapshot.sequence_number,
                version,
                snapshot.first_row_id,
            )
            place = self._beside(here, "snap-{}.avro")
            self._known[here] = place, self._put(place, encode_manifest_list(rows, header, place))
        return self._known[here][0]

    def _manifest(self, location: str, metadata: TableMetadata) -> tuple[str, int]:
        here = self.map(location)
        if here not in self._known:
            data = self.store.read(here)
            header = decode_manifest_header(data, here)
            entries = decode_manifest(data, here, ALL)
            spec = find_spec(metadata, header.partition_spec_id)
            partition = spec.columns(metadata.schema_of_spec(spec))
            place = self._beside(here, "{}-m0.avro")
            encoded = encode_manifest(self._entries(entries), header, partition, place)
            self._known[here] = place, self._put(place, encoded)
        return self._known[here]

    def _entries(self, entries: ManifestEntries) -> ManifestEntries:
        rows = entries.select(
            ["content", "file_format", "file_path", "file_size_in_bytes", "content_offset"]
        ).to_pylist()
        moved = [self._file(row) for row in rows]
        entries = _with(entries, "file_path", [place for place, _, _ in moved])
        entries = _with(entries, "file_size_in_bytes", [size for _, size, _ in moved])
        entries = _with(entries, "content_offset", [offset for _, _, offset in moved])
        named = entries.referenced_data_file.to_pylist()
        entries = _with(entries, "referenced_data_file", [None if at is None else self.map(at) for at in named])
        for name in ("lower_bounds", "upper_bounds"):
            bounds = entries[name].to_pylist()
            of_deletes = (row["content"] == POSITION_DELETES for row in rows)
            entries = _with(
                entries, name, [self._bound(b) if d else b for b, d in zip(bounds, of_deletes, strict=True)]
            )
        return entries

    def _bound(self, bounds: list[tuple[int, bytes]] | None) -> list[tuple[int, bytes]] | None:
        if bounds is None:
            return None
        return [(i, self.map(b.decode()).encode() if i == DELETED_FILE.field_id else b) for i, b in bounds]

    def _file(self, row: Mapping[str, Any]) -> tuple[str, int, int | None]:
        """Return the current location of a file in a manifest, its size, and the offset of its deletion vector."""
        here, size, offset = self.map(row["file_path"]), row["file_size_in_bytes"], row["content_offset"]
        if row["content"] != POSITION_DELETES or not is_inside(row["file_path"], self.old):
            return here, size, offset
        if here not in self._known:
            is_puffin = row["file_format"].upper() == "PUFFIN"
            data = self._vectors(here) if is_puffin else self._positions(here)
            place = self._beside(here, "{}-deletes" + (".puffin" if is_puffin else ".parquet"))
            self._known[here] = place, self._put(place, data)
        return *self._known[here], offset

    def _positions(self, here: str) -> bytes:
        table = pq.read_table(io.BytesIO(self.store.read(here)))
        encoded = table.column(DELETED_FILE.name).combine_chunks().dictionary_encode()
        paths = pa.array([self.map(path) for path in encoded.dictionary.to_pylist()], pa.string())
        at = table.column_names.index(DELETED_FILE.name)
        table = table.set_column(
            at, table.schema.field(at), pc.take(paths, encoded.indices).cast(table.schema.field(at).type)
        )
        sink = pa.BufferOutputStream()
        pq.write_table(table, sink, compression="zstd", store_schema=False)
        return bytes(sink.getvalue())

    def _vectors(self, here: str) -> bytes:
        data = self.store.read(here)
        footer = decode_footer(data, here)
        blobs = []
        for stored in footer.blobs:
            content = decode_blob(data[stored.offset : stored.offset + stored.length], stored, here)
            properties = dict(stored.properties)
            if REFERENCED_DATA_FILE in properties:
                properties[REFERENCED_DATA_FILE] = self.map(properties[REFERENCED_DATA_FILE])
            blobs.append(
                Blob(stored.type, content, stored.fields, stored.snapshot_id, stored.sequence_number, None, properties)
            )
        encoded, made = encode_puffin(blobs, footer.properties)
        if [blob.offset for blob in made.blobs] != [blob.offset for blob in footer.blobs]:
            raise InvalidInput(f"cannot relocate {here}: its blobs cannot keep their offsets")
        return encoded

    def _beside(self, here: str, name: str) -> str:
        return f"{here.rsplit('/', 1)[0]}/{name.format(self._id(here))}"

    def _id(self, here: str) -> str:
        """Return the name of the rewritten file, which is deterministic, so that a repeated run finds it."""
        return str(uuid.uuid5(uuid.NAMESPACE_URL, f"{here}\n{self.old}"))

    def _put(self, location: str, data: bytes) -> int:
        try:
            self.store.put_new(location, data)
        except FileAlreadyExists:
            return self.store.size(location)  # from an interrupted run
        self.written += 1
        return len(data)


def _with(rows: AnyRows, name: str, values: Sequence[object]) -> AnyRows:
    return rows.replaced({name: pa.array(values, rows[name].type)})


class MovedLake:
    """Explains why tables of a lake cannot be loaded, if the lake was moved; it looks once."""

    def __init__(self, catalog: Catalog, store: Store, warehouse: str) -> None:
        self._look = cache(lambda: _find_moved(catalog, store, warehouse))

    def explain(self, error: IcefieldError) -> IcefieldError:
        """Return the error for a moved lake, if that is why its tables are not where their metadata says."""
        return self._look() or error if isinstance(error, LocationRefused) else error


def _find_moved(catalog: Catalog, store: Store, warehouse: str) -> LocationRefused | None:
    try:
        plan = plan_relocation(catalog, store, warehouse)
    except IcefieldError:
        return None
    if not plan.entries:
        return None
    return LocationRefused(
        f"the lake was moved or copied from {plan.old} to {plan.new}, and its tables still name the old location",
        hint="Run `icefield relocate`, or lake.relocate(), to rewrite the metadata",
    )
