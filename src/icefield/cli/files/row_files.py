"""Read files of rows as streams of Arrow batches: Parquet, CSV, JSON Lines, also compressed.

CSV and JSON have no types of their own: with a table's schema, values are read as its types; without one, types are
inferred from the first block of the file. In CSV an empty cell is null and a quoted empty cell is an empty string.
Raises InvalidInput with the path of a file that cannot be read.
"""

import io
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.json
import pyarrow.parquet

from icefield.cli.files.csv_dialect import DELIMITERS, SAMPLE_BYTES, find_delimiter
from icefield.cli.files.json_documents import is_json_lines, json_lines
from icefield.errors import IcefieldError, InvalidInput
from icefield.types.arrow import arrow_type
from icefield.types.datatypes import NestedField, PrimitiveType, UUIDType
from icefield.types.schema import Schema

COMPRESSED = (".gz", ".bz2", ".zst", ".lz4")
BATCH_ROWS = 65_536
# Types are inferred from so much of a file; Arrow's own block is a sixteenth of it.
INFERENCE_BYTES = 1 << 24
_JSON_BLOCK = pyarrow.json.ReadOptions(block_size=INFERENCE_BYTES)  # no row may be larger
PARQUET, CSV, JSON = "parquet", "csv", "json"
_OF_TEXT = (pa.date32(), pa.timestamp("us"), pa.timestamp("us", "UTC"))
KINDS = {".parquet": PARQUET, ".csv": CSV, ".tsv": CSV, ".json": JSON, ".jsonl": JSON, ".ndjson": JSON}


@dataclass(frozen=True)
class RowFormat:
    """How files are read. kind, delimiter: None is found out for each file. records: where rows are in JSON."""

    kind: str | None = None
    delimiter: str | None = None
    quote: str = '"'
    has_header: bool = True
    nulls: tuple[str, ...] = ("",)
    encoding: str = "utf8"
    records: str | None = None


BY_NAME = RowFormat()


def row_file_schema(path: Path, table: Schema | None, form: RowFormat = BY_NAME) -> pa.Schema:
    """Read the Arrow schema of a file."""
    with _faults_of(path), _open(path) as file:
        return _OPENERS[kind_of(path, form)](file, table, _found_out(path, form))[0]


def read_row_file(path: Path, table: Schema | None, form: RowFormat = BY_NAME) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a file in batches."""
    with _faults_of(path), _open(path) as file:
        batches = _OPENERS[kind_of(path, form)](file, table, _found_out(path, form))[1]
        while (batch := next(batches, None)) is not None:
            yield batch


def kind_of(path: Path, form: RowFormat) -> str:
    """Return the format of a file: the given one, or the one that its name says."""
    if form.kind is not None:
        return form.kind
    suffixes = [s.lower() for s in path.suffixes]
    if suffixes and suffixes[-1] in COMPRESSED:
        suffixes.pop()
    kind = KINDS.get(suffixes[-1]) if suffixes else None
    if kind is None:
        raise InvalidInput(
            f"cannot determine the format of {path} from its name",
            hint=f"Names end in {', '.join(KINDS)}, and may be compressed ({', '.join(COMPRESSED)}); or give --format",
        )
    return kind


def sniffed_delimiter(path: Path, form: RowFormat) -> str | None:
    """Return the delimiter that is found in a file; None if it is given, or the file is not CSV."""
    if form.delimiter is not None or kind_of(path, form) != CSV:
        return None
    with _faults_of(path), _open(path) as file:
        sample = bytes(file.read(SAMPLE_BYTES)).decode(form.encoding, errors="replace")
    return find_delimiter(sample, form.quote)


def _found_out(path: Path, form: RowFormat) -> RowFormat:
    sniffed = sniffed_delimiter(path, form)
    return form if sniffed is None else replace(form, delimiter=sniffed)


Opened = tuple[pa.Schema, Iterator[pa.RecordBatch]]


def _open_parquet(file: pa.NativeFile, _: Schema | None, __: RowFormat) -> Opened:
    parquet = pyarrow.parquet.ParquetFile(file)
    return parquet.schema_arrow, parquet.iter_batches(batch_size=BATCH_ROWS)


def _open_csv(file: pa.NativeFile, table: Schema | None, form: RowFormat) -> Opened:
    names = [] if form.has_header or table is None else table.column_names
    reader = pyarrow.csv.open_csv(
        file,
        read_options=pyarrow.csv.ReadOptions(
            block_size=None if table else INFERENCE_BYTES,
            column_names=names,
            autogenerate_column_names=not form.has_header and not names,
            encoding=form.encoding,
        ),
        parse_options=pyarrow.csv.ParseOptions(
            delimiter=form.delimiter or DELIMITERS[0], quote_char=form.quote or False, newlines_in_values=True
        ),
        convert_options=pyarrow.csv.ConvertOptions(
            column_types={f.name: _file_type(f) for f in _primitives(table)},
            null_values=list(form.nulls),
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        ),
    )
    return reader.schema, iter(reader)


def _open_json(file: pa.NativeFile, table: Schema | None, form: RowFormat) -> Opened:
    stream = _json_stream(file, form)
    if table is None:
        sample, rest = stream.read(INFERENCE_BYTES), iter(partial(stream.read, SAMPLE_BYTES), b"")
        target = _inferred(sample)
        stream = io.BufferedReader(_Joined(chain([sample], rest)), SAMPLE_BYTES)
    else:
        target = pa.schema([pa.field(f.name, _file_type(f)) for f in table.fields])
    read_as = pa.schema([f.with_type(_json_type(f.type)) for f in target])
    options = pyarrow.json.ParseOptions(explicit_schema=read_as, unexpected_field_behavior="error")
    reader = pyarrow.json.open_json(stream, _JSON_BLOCK, options)
    return target, (_with_types(batch, target) for batch in reader)


def _inferred(sample: bytes) -> pa.Schema:
    """Infer the columns of JSON lines. Arrow takes dates for timestamps, and drops the offsets of times."""
    whole = sample[: sample.rfind(b"\n") + 1] if len(sample) == INFERENCE_BYTES else sample
    lines = whole or sample
    found = pyarrow.json.read_json(io.BytesIO(lines), _JSON_BLOCK).schema
    as_text = pa.schema([f.with_type(_json_type(f.type)) for f in found])
    texts = pyarrow.json.read_json(io.BytesIO(lines), _JSON_BLOCK, pyarrow.json.ParseOptions(explicit_schema=as_text))
    return pa.schema([f.with_type(_type_of(f.type, texts.column(f.name).combine_chunks())) for f in found])


def _type_of(found: pa.DataType, texts: pa.Array) -> pa.DataType:
    """Return the type of values, with that of dates and times by their texts."""
    if pa.types.is_struct(found):
        parts = [(found.field(i), texts.field(i)) for i in range(found.num_fields)]
        return pa.struct([part.with_type(_type_of(part.type, own)) for part, own in parts])
    if pa.types.is_list(found):
        return pa.list_(_type_of(found.value_type, texts.flatten()))
    if not (pa.types.is_string(found) or pa.types.is_timestamp(found)):
        return found
    return next((kind for kind in _OF_TEXT if texts.null_count < len(texts) and _can_cast(texts, kind)), pa.string())


def _can_cast(texts: pa.Array, kind: pa.DataType) -> bool:
    try:
        texts.cast(kind)
    except pa.ArrowInvalid:
        return False
    return True


def _json_stream(file: pa.NativeFile, form: RowFormat) -> Any:
    """Return a stream of JSON lines; a file that has them already is read as it is."""
    buffered = io.BufferedReader(file, SAMPLE_BYTES)
    first = buffered.peek(SAMPLE_BYTES)
    if form.records is None and is_json_lines(first):
        return buffered
    lines = json_lines(io.TextIOWrapper(buffered, encoding=form.encoding), form.records)
    return io.BufferedReader(_Joined(lines), SAMPLE_BYTES)


class _Joined(io.RawIOBase):
    """Pieces of bytes as one stream."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._left = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._left:
            piece = next(self._pieces, None)
            if piece is None:
                return 0
            self._left = piece
        size = min(len(buffer), len(self._left))
        buffer[:size], self._left = self._left[:size], self._left[size:]
        return size


def _with_types(batch: pa.RecordBatch, target: pa.Schema) -> pa.RecordBatch:
    arrays = [_cast(array, field.type) for array, field in zip(batch, target, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=target)


def _cast(array: pa.Array, kind: pa.DataType) -> pa.Array:
    if pa.types.is_map(kind):
        return _to_map(array, kind)
    if pa.types.is_time(kind):  # Arrow parses times only as part of a timestamp
        return pc.binary_join_element_wise("1970-01-01", array, " ").cast(pa.timestamp("us")).cast(kind)
    return array.cast(kind)


def _to_map(entries: pa.ListArray, kind: pa.MapType) -> pa.MapArray:
    """Convert lists of {key, value}, which the parser can read, to maps."""
    keys, items = entries.flatten().flatten()
    mask = entries.is_null() if entries.null_count else None
    return pa.MapArray.from_arrays(
        entries.offsets, _cast(keys, kind.key_type), _cast(items, kind.item_type), type=kind, mask=mask
    )


_OPENERS: dict[str, Callable[[pa.NativeFile, Schema | None, RowFormat], Opened]] = {
    PARQUET: _open_parquet,
    CSV: _open_csv,
    JSON: _open_json,
}


def _open(path: Path) -> pa.NativeFile:
    if path.suffix.lower() in COMPRESSED:
        return pa.input_stream(str(path), compression="detect")
    return pa.memory_map(str(path)) if path.suffix.lower() == ".parquet" else pa.input_stream(str(path))


@contextmanager
def _faults_of(path: Path) -> Iterator[None]:
    try:
        if path.is_dir():
            raise InvalidInput(f"cannot read {path}: it is a directory", hint="Name its files, such as DIR/*.parquet")
        yield
    except IcefieldError:
        raise
    except FileNotFoundError as error:
        raise InvalidInput(f"no such file: {path}") from error
    except (pa.ArrowException, OSError, LookupError, ValueError) as error:
        raise InvalidInput(f"cannot read {path}: {str(error).strip()}") from error


def _primitives(table: Schema | None) -> Iterator[NestedField]:
    return (f for f in (table.fields if table else ()) if isinstance(f.type, PrimitiveType))


def _file_type(field: NestedField) -> pa.DataType:
    # Neither reader supports UUIDs; as strings they are checked when the rows are converted to the table's schema.
    return pa.string() if isinstance(field.type, UUIDType) else arrow_type(field.type)


def _json_type(kind: pa.DataType) -> pa.DataType:
    """Return the type to parse JSON as; values that the parser would read as numbers are read as strings and cast."""
    if pa.types.is_struct(kind):
        return pa.struct(
            [pa.field(f.name, _json_type(f.type)) for f in (kind.field(i) for i in range(kind.num_fields))]
        )
    if pa.types.is_map(kind):
        return pa.list_(pa.struct([("key", _json_type(kind.key_type)), ("value", _json_type(kind.item_type))]))
    if pa.types.is_list(kind):
        return pa.list_(_json_type(kind.value_type))
    # The parser drops the offset of a timestamp; a cast refuses one that the type does not have.
    is_text = pa.types.is_temporal(kind) or pa.types.is_fixed_size_binary(kind)
    return pa.string() if is_text or isinstance(kind, pa.BaseExtensionType) else kind
