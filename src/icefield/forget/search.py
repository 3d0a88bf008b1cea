"""Search all files below a table's directories for rows and terms: proof that nothing is left.

    every file     its name, and its raw bytes; values in names are cut off, as bounds are
    Parquet        every column of every row, with the values of dictionaries that no row uses; matching rows
    Avro           the decompressed blocks, and the header; bounds are cut off, so the beginning of a term counts too
    JSON           decompressed, strings unescaped
    Puffin         the footer and the decompressed blobs

Text is compared as UTF-8, in any position. Numbers, dates and UUIDs are compared with whole values of Parquet columns.
What it cannot see: files elsewhere (copies, other tables, files that `add_files` took from another directory), older
versions of objects that a store keeps, caches on disk, and hashes such as Bloom filters and sketches.
"""

import gzip
import io
import uuid
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any
from urllib.parse import quote, quote_plus, unquote

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from icefield.codec.avro.container import parse_header, raw_blocks
from icefield.codec.json.name_mapping import PROPERTY, NameMapping, encode_name_mapping, find_name_mapping, map_schema
from icefield.codec.puffin.puffin import decode_blob, decode_footer
from icefield.engine.file_works import FindMatches
from icefield.engine.local import LocalEngine
from icefield.errors import CorruptFile, IcefieldError, InvalidInput, MissingFile
from icefield.expr.bind.bound import Bound, columns_of
from icefield.forget.result import SearchResult, Trace
from icefield.leases.folder import AUDIT, metadata_folder
from icefield.model.metadata import TableMetadata
from icefield.parquet.mapped_ids import with_mapped_ids
from icefield.parquet.read.task import FileTask
from icefield.storage.store import Store

MOST_TRACES = 1_000
CHUNK_BYTES = 8 * 1024 * 1024
BATCH_ROWS = 64 * 1024
BOUND_CHARACTERS = 15  # bounds are cut off at 16 by default, and an upper one has another last character
NAME_BYTES = 60  # names of directories are cut off, too, after more than this; other letters than ASCII take up to 12
_FIELD_ID = b"PARQUET:field_id"
_GZIP = b"\x1f\x8b"


@dataclass(frozen=True)
class Term:
    """What is searched for. number: from 1. forms: its bytes. text: for numbers and dates, None for bytes."""

    number: int
    forms: tuple[bytes, ...]
    text: str | None

    @property
    def beginnings(self) -> tuple[bytes, ...]:
        """What bounds and names of directories that are cut off hold of it; nothing if that is all of it."""
        if self.text is None:
            return ()
        plain, encoded = self.text[:BOUND_CHARACTERS], quote(self.text[:BOUND_CHARACTERS], safe="")
        found = dict.fromkeys(each.encode() for each in (plain, encoded[:NAME_BYTES]))
        return tuple(each for each in found if each not in self.forms)


def parse_terms(given: Sequence[str | bytes]) -> list[Term]:
    """Check terms of a search. Raises InvalidInput."""
    return [_parse_term(number, value) for number, value in enumerate(given, 1)]


def _parse_term(number: int, value: str | bytes) -> Term:
    if not value:
        raise InvalidInput(f"term {number} of the search is empty", hint="Give text that only the rows have")
    if isinstance(value, bytes):
        return Term(number, (value,), None)
    # Values of partitions are encoded in the names of files.
    forms = dict.fromkeys(text.encode() for text in (value, quote(value, safe=""), quote_plus(value)))
    with suppress(ValueError):
        forms[uuid.UUID(value).bytes] = None
    return Term(number, tuple(forms), value)


def check_terms(terms: Sequence[Term], metadata: TableMetadata, directories: Sequence[str]) -> None:
    """Refuse terms that the names of directories or columns have: the search would always find them.

    Raises InvalidInput.
    """
    places = [(f"{each}/", f"the directory {each}") for each in (*directories, metadata_folder(metadata))]
    columns = dict.fromkeys(name for schema in metadata.schemas for path in schema.ids_by_path for name in path)
    places += [(name, f"the column {name}") for name in columns]
    for term in terms:
        found = next((what for text, what in places if any(form in text.encode() for form in term.forms)), None)
        if found is not None:
            raise InvalidInput(
                f"cannot search for term {term.number}: it is in the name of {found}, and would always be found",
                hint="Give text that only the rows have, such as a whole name or address",
            )


@dataclass
class Search:
    """A search in progress."""

    store: Store
    metadata: TableMetadata
    where: Bound
    terms: Sequence[Term]
    _traces: list[Trace] = field(default_factory=list)
    _unreadable: list[str] = field(default_factory=list)
    _kinds: Counter[str] = field(default_factory=Counter)
    _bytes: int = 0
    _audits: int = 0

    def run(self, roots: Sequence[str], metadata_folder: str) -> SearchResult:
        """Search the files below some directories."""
        files = [file for root in roots for file in self.store.list(root)]
        done = {file.location.removesuffix(".done") for file in files if file.location.endswith(".done")}
        for file in files:
            found = list(self._look(file.location, is_data=not file.location.startswith(metadata_folder + "/")))
            if found and f"/{AUDIT}/" in file.location and (finished := file.location.removesuffix(".parquet")) in done:
                # What was deleted is recorded; the values of partitions are in the names of those files.
                self.store.delete(file.location)
                self.store.delete(f"{finished}.done")
                self._audits += 1
                continue
            self._traces += found
            self._bytes += file.size_bytes
        return SearchResult(
            sum(self._kinds.values()),
            self._bytes,
            dict(sorted(self._kinds.items())),
            len(self.terms),
            tuple(self._traces[:MOST_TRACES]),
            tuple(self._unreadable),
            self._audits,
        )

    def _look(self, location: str, *, is_data: bool) -> Iterator[Trace]:
        """Yield what is found in one file, each term once for each place."""
        kind = _kind(location)
        self._kinds[kind] += 1
        names = f"{location}\0{unquote(location)}".encode()
        yield from self._in_bytes(names, location, "name", is_cut_off=True)
        try:
            yield from self._in_raw(location)
            if kind == "parquet":
                yield from self._in_parquet(location, is_data=is_data)
            elif kind in _DECODERS:
                for part in _DECODERS[kind](self.store.read(location), location):
                    yield from self._in_bytes(part, location, "decoded", is_cut_off=kind == "avro")
        except MissingFile:
            return  # another process has removed it
        except (IcefieldError, pa.ArrowException, OSError, ValueError, EOFError):
            self._unreadable.append(location)

    def _in_raw(self, location: str) -> Iterator[Trace]:
        if not self.terms:
            return
        overlap = max(len(form) for term in self.terms for form in term.forms) - 1
        found: set[int] = set()
        with self.store.open_input(location) as stream:
            tail = b""
            while chunk := stream.read(CHUNK_BYTES):
                for trace in self._in_bytes(tail + chunk, location, "raw bytes"):
                    if trace.term not in found:
                        found.add(trace.term)
                        yield trace
                tail = (tail + chunk)[-overlap:] if overlap else b""

    def _in_bytes(self, data: bytes, location: str, place: str, *, is_cut_off: bool = False) -> Iterator[Trace]:
        for term in self.terms:
            if any(form in data for form in term.forms):
                yield Trace(term.number, location, place)
            elif is_cut_off and any(beginning in data for beginning in term.beginnings):
                yield Trace(term.number, location, place, is_certain=False)

    def _in_parquet(self, location: str, *, is_data: bool) -> Iterator[Trace]:
        is_record = f"/{AUDIT}/" in location  # of names, which are cut off
        with self.store.open_input(location) as stream:
            file = pq.ParquetFile(stream)
            named = [f.name for f in file.schema_arrow if pa.types.is_string(f.type) or pa.types.is_binary(f.type)]
            file = pq.ParquetFile(stream, read_dictionary=named)
            found: set[tuple[int, str]] = set()
            for batch in file.iter_batches(BATCH_ROWS) if self.terms else ():
                for name, column in _leaves(batch):
                    for term in self.terms:
                        if (term.number, name) in found:
                            continue
                        is_certain = _holds(column, term)
                        if is_certain or (is_record and _holds(column, replace(term, forms=term.beginnings))):
                            found.add((term.number, name))
                            yield Trace(term.number, location, f"column {name}", is_certain=is_certain)
            ids = _field_ids(with_mapped_ids(file.schema_arrow, self._mapping))
            rows = file.metadata.num_rows
        if is_data and columns_of(self.where) <= ids:
            task = FileTask(location, rows, 0, 0)
            if any(self._engine.run(FindMatches(self.metadata.schema, self.where), [[task]])):
                yield Trace(0, location, "a row")

    @cached_property
    def _mapping(self) -> NameMapping:
        """The columns of files without field ids, also if nothing refers to them any more."""
        return find_name_mapping(self.metadata.properties) or map_schema(self.metadata.schema)

    @cached_property
    def _engine(self) -> LocalEngine:
        properties = {**self.metadata.properties, PROPERTY: encode_name_mapping(self._mapping)}
        return LocalEngine(self.store, replace(self.metadata, properties=properties))


def _kind(location: str) -> str:
    name = location.rpartition("/")[2]
    kind = name.rpartition(".")[2] if "." in name else "other"
    return {"stats": "puffin", "gz": "json"}.get(kind, kind) if kind in _KNOWN else "other"


def _decode_avro(data: bytes, location: str) -> Iterator[bytes]:
    header = parse_header(data, location)
    yield b"\0".join(header.metadata.values())
    for block in raw_blocks(data, header, location):
        yield bytes(block.data)


def _decode_json(data: bytes, location: str) -> Iterator[bytes]:
    plain = gzip.GzipFile(fileobj=io.BytesIO(data)).read() if data.startswith(_GZIP) else data
    yield plain
    if not plain:
        return
    try:
        yield "\0".join(_strings(msgspec.json.decode(plain))).encode()
    except msgspec.DecodeError as error:
        raise CorruptFile(location, f"it is not JSON: {error}") from error


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield str(key)
            yield from _strings(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _strings(inner)


def _decode_puffin(data: bytes, location: str) -> Iterator[bytes]:
    footer = decode_footer(data, location)
    yield msgspec.json.encode(footer)
    for blob in footer.blobs:
        yield decode_blob(data[blob.offset : blob.offset + blob.length], blob, location)


_DECODERS = {"avro": _decode_avro, "json": _decode_json, "puffin": _decode_puffin}
_KNOWN = {"parquet", "stats", "gz", *_DECODERS}


def _leaves(batch: pa.RecordBatch) -> Iterator[tuple[str, pa.Array]]:
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        yield from _leaves_of(name, column)


def _leaves_of(name: str, column: pa.Array) -> Iterator[tuple[str, pa.Array]]:
    """Yield the columns inside a column; values of a dictionary count, whether a row uses them or not."""
    kind = column.type
    if isinstance(kind, pa.BaseExtensionType):
        yield from _leaves_of(name, column.storage)
    elif pa.types.is_dictionary(kind):
        yield name, column.dictionary
    elif pa.types.is_struct(kind):
        for at, inner in enumerate(kind):
            yield from _leaves_of(f"{name}.{inner.name}", column.field(at))
    elif pa.types.is_map(kind):
        yield from _leaves_of(f"{name}.key", column.keys)
        yield from _leaves_of(f"{name}.value", column.items)
    elif pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        yield from _leaves_of(f"{name}.element", column.values)
    else:
        yield name, column


def _holds(column: pa.Array, term: Term) -> bool:
    kind = column.type
    if pa.types.is_fixed_size_binary(kind):
        column, kind = column.cast(pa.binary()), pa.binary()
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        column, kind = column.cast(pa.large_binary()), pa.large_binary()
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return any(pc.any(pc.match_substring(column, form)).as_py() for form in term.forms)
    if term.text is None:
        return False
    try:
        return bool(pc.any(pc.equal(column.cast(pa.string()), term.text)).as_py())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return False


def _field_ids(schema: pa.Schema) -> set[int]:
    """Return the ids of all fields of a file."""
    found: set[int] = set()
    fields = list(schema)
    while fields:
        each = fields.pop()
        found |= {int(each.metadata[_FIELD_ID])} if each.metadata and _FIELD_ID in each.metadata else set()
        fields += [each.type.field(at) for at in range(each.type.num_fields)]
    return found
