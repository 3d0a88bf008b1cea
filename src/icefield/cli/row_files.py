"""Read files of rows as streams of Arrow batches: Parquet, CSV, JSON Lines, also compressed.

CSV and JSON have no types of their own: with a table's schema, values are read as its types; without one, types are
inferred from the first block of the file. In CSV an empty cell is null and a quoted empty cell is an empty string.
Raises InvalidInput with the path of a file that cannot be read.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.json
import pyarrow.parquet

from icefield.errors import InvalidInput
from icefield.types.arrow import arrow_type
from icefield.types.datatypes import NestedField, PrimitiveType, UUIDType
from icefield.types.schema import Schema

COMPRESSED = (".gz", ".bz2", ".zst", ".lz4")
BATCH_ROWS = 65_536


def row_file_schema(path: Path, table: Schema | None) -> pa.Schema:
    """Read the Arrow schema of a file."""
    with _faults_of(path), _open(path) as file:
        return _reader(path)(file, table)[0]


def read_row_file(path: Path, table: Schema | None) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a file in batches."""
    with _faults_of(path), _open(path) as file:
        batches = _reader(path)(file, table)[1]
        while (batch := next(batches, None)) is not None:
            yield batch


Opened = tuple[pa.Schema, Iterator[pa.RecordBatch]]


def _open_parquet(file: pa.NativeFile, _: Schema | None) -> Opened:
    parquet = pyarrow.parquet.ParquetFile(file)
    return parquet.schema_arrow, parquet.iter_batches(batch_size=BATCH_ROWS)


def _open_csv(file: pa.NativeFile, table: Schema | None) -> Opened:
    reader = pyarrow.csv.open_csv(
        file,
        parse_options=pyarrow.csv.ParseOptions(newlines_in_values=True),
        convert_options=pyarrow.csv.ConvertOptions(
            column_types={f.name: _file_type(f) for f in _primitives(table)},
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        ),
    )
    return reader.schema, iter(reader)


def _open_json(file: pa.NativeFile, table: Schema | None) -> Opened:
    if table is None:
        reader = pyarrow.json.open_json(file)
        return reader.schema, iter(reader)
    read_as = pa.schema([pa.field(f.name, _json_type(arrow_type(f.type))) for f in table.fields])
    target = pa.schema([pa.field(f.name, _file_type(f)) for f in table.fields])
    options = pyarrow.json.ParseOptions(explicit_schema=read_as, unexpected_field_behavior="error")
    reader = pyarrow.json.open_json(file, parse_options=options)
    return target, (_with_types(batch, target) for batch in reader)


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


READERS: dict[str, Callable[[pa.NativeFile, Schema | None], Opened]] = {
    ".parquet": _open_parquet,
    ".csv": _open_csv,
    ".json": _open_json,
    ".jsonl": _open_json,
    ".ndjson": _open_json,
}


def _reader(path: Path) -> Callable[[pa.NativeFile, Schema | None], Opened]:
    suffixes = [s.lower() for s in path.suffixes]
    if suffixes and suffixes[-1] in COMPRESSED:
        suffixes.pop()
    reader = READERS.get(suffixes[-1]) if suffixes else None
    if reader is None:
        raise InvalidInput(
            f"cannot determine the format of {path} from its name",
            hint=f"Names end in {', '.join(READERS)}, and may be compressed ({', '.join(COMPRESSED)})",
        )
    return reader


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
    except FileNotFoundError as error:
        raise InvalidInput(f"no such file: {path}") from error
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
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
    is_text = pa.types.is_date(kind) or pa.types.is_time(kind) or pa.types.is_fixed_size_binary(kind)
    return pa.string() if is_text or isinstance(kind, pa.BaseExtensionType) else kind
