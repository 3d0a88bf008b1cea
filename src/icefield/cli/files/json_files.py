"""Read JSON: values as the types of a table, or as types that are inferred from the beginning of the file."""

import io
import json
import re
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import chain, islice
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json

from icefield.cli.files.json_documents import is_json_lines, json_lines
from icefield.cli.files.row_format import INFERENCE_BYTES, JSON, MOST_WHOLE, WHOLE_NUMBER, RowFormat, file_type
from icefield.cli.files.streams_of_bytes import BLOCK_BYTES, UTF_8, as_utf8, joined
from icefield.cli.files.value_faults import MOST_SHOWN, Fault, first_that_fails, value_fault
from icefield.types.schema import Schema

ROWS_AT_ONCE = 4_096
_ONE_BLOCK = pyarrow.json.ReadOptions(block_size=INFERENCE_BYTES)  # no row may be larger
_OF_TEXT = (pa.date32(), pa.timestamp("us"), pa.timestamp("us", "UTC"))
_LONG_NUMBER = re.compile(rb"\d{19}")
_CHANGED = re.compile(r"JSON parse error: Column\(/(.*)\) changed from (\w+) to (\w+) in row (\d+)")


def open_json(file: pa.NativeFile, table: Schema | None, form: RowFormat) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    stream = _json_stream(file, form)
    if table is None:
        sample, rest = stream.read(INFERENCE_BYTES), iter(partial(stream.read, BLOCK_BYTES), b"")
        target = _inferred(sample)
        stream = joined(chain([sample], rest))
    else:
        target = _schema_to_read(table)
    reader = pyarrow.json.open_json(stream, _ONE_BLOCK, _parse_options(target))
    return target, (_with_types(batch, target) for batch in reader)


def find_json_fault(
    message: str, opened: Callable[[], pa.NativeFile], table: Schema | None, form: RowFormat
) -> Fault | None:
    """Find the value that Arrow cannot read, by reading the file again; None if it is about something else."""
    if table is None:
        if (match := _CHANGED.match(message)) is None:
            return None
        column, before, after, row = match.groups()
        reason = (
            f"row {int(row) + 1:,}, column {column.replace('/', '.')}: {_a(after)}, and {_a(before)} in a row before"
        )
        return Fault(reason, "Correct it in the file")
    target, done = _schema_to_read(table), 0
    with opened() as file:
        lines = (line for line in _json_stream(file, form) if line.strip())
        while rows := list(islice(lines, ROWS_AT_ONCE)):
            if not _is_readable(rows, target):
                at = first_that_fails(len(rows), partial(_is_part_readable, rows, target))
                return _fault_of_row(done + at + 1, rows[at], table, target, form)
            done += len(rows)
    return None


def _a(kind: str) -> str:
    return f"{'an' if kind.startswith(('a', 'o')) else 'a'} {kind}"


def _fault_of_row(row: int, line: bytes, table: Schema, target: pa.Schema, form: RowFormat) -> Fault | None:
    try:
        values = json.loads(line)
    except ValueError as error:
        text = line.decode(errors="replace").strip()[:MOST_SHOWN]
        return Fault(f"row {row:,} is not a JSON object ({error}): {text}", None)
    if not isinstance(values, dict):
        return Fault(f"row {row:,} is not a JSON object: {line.decode(errors='replace').strip()[:MOST_SHOWN]}", None)
    columns = {field.name: field for field in target}
    for name, value in values.items():
        if name not in columns:
            known = ", ".join(columns)
            return Fault(f"row {row:,} has a column {name!r}, which is not in the table", f"The table has: {known}")
        if not _is_readable([json.dumps({name: value}).encode()], pa.schema([columns[name]])):
            text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            return value_fault(row, table.find_field(name), text, JSON, form)
    return None


def _is_part_readable(rows: list[bytes], target: pa.Schema, start: int, stop: int) -> bool:
    return _is_readable(rows[start:stop], target)


def _is_readable(rows: list[bytes], target: pa.Schema) -> bool:
    text = b"\n".join(rows)
    try:
        block = pyarrow.json.ReadOptions(block_size=len(text) + 1)
        for batch in pyarrow.json.read_json(io.BytesIO(text), block, _parse_options(target)).to_batches():
            _with_types(batch, target)
    except pa.ArrowException:
        return False
    return True


def _schema_to_read(table: Schema) -> pa.Schema:
    return pa.schema([pa.field(f.name, file_type(f)) for f in table.fields])


def _parse_options(target: pa.Schema) -> pyarrow.json.ParseOptions:
    read_as = pa.schema([f.with_type(_json_type(f.type)) for f in target])
    return pyarrow.json.ParseOptions(explicit_schema=read_as, unexpected_field_behavior="error")


def _inferred(sample: bytes) -> pa.Schema:
    """Infer the columns of JSON lines. Arrow takes dates for timestamps, and drops the offsets of times."""
    whole = sample[: sample.rfind(b"\n") + 1] if len(sample) == INFERENCE_BYTES else sample
    lines = whole or sample
    found = pyarrow.json.read_json(io.BytesIO(lines), _ONE_BLOCK).schema
    as_text = pa.schema([f.with_type(_json_type(f.type)) for f in found])
    strings = pyarrow.json.read_json(io.BytesIO(lines), _ONE_BLOCK, pyarrow.json.ParseOptions(explicit_schema=as_text))
    known = pa.schema([f.with_type(_type_of(f.type, strings.column(f.name).combine_chunks())) for f in found])
    if not _LONG_NUMBER.search(lines):
        return known
    rows = [json.loads(line) for line in lines.splitlines() if line.strip()]
    return pa.schema([f.with_type(_exact(f.type, [row.get(f.name) for row in rows])) for f in known])


def _exact(found: pa.DataType, values: Iterable[Any]) -> pa.DataType:
    """Return the type that keeps whole numbers of more than 64 bits, for which Arrow finds a double."""
    present = [value for value in values if value is not None]
    if pa.types.is_struct(found):
        parts = [found.field(i) for i in range(found.num_fields)]
        return pa.struct([part.with_type(_exact(part.type, [v.get(part.name) for v in present])) for part in parts])
    if pa.types.is_list(found):
        return pa.list_(_exact(found.value_type, chain.from_iterable(present)))
    is_whole = pa.types.is_floating(found) and all(type(value) is int for value in present)
    return WHOLE_NUMBER if is_whole and all(abs(value) < MOST_WHOLE for value in present) else found


def _type_of(found: pa.DataType, strings: pa.Array) -> pa.DataType:
    """Return the type of values, with that of dates and times by their strings."""
    if pa.types.is_struct(found):
        parts = [(found.field(i), strings.field(i)) for i in range(found.num_fields)]
        return pa.struct([part.with_type(_type_of(part.type, own)) for part, own in parts])
    if pa.types.is_list(found):
        return pa.list_(_type_of(found.value_type, strings.flatten()))
    if not (pa.types.is_string(found) or pa.types.is_timestamp(found)):
        return found
    return next(
        (kind for kind in _OF_TEXT if strings.null_count < len(strings) and _can_cast(strings, kind)), pa.string()
    )


def _can_cast(strings: pa.Array, kind: pa.DataType) -> bool:
    try:
        strings.cast(kind)
    except pa.ArrowInvalid:
        return False
    return True


def _json_stream(file: pa.NativeFile, form: RowFormat) -> Any:
    """Return a stream of JSON lines in UTF-8; a file that has them already is read as it is."""
    text = as_utf8(file, form.encoding)
    if form.records is None and is_json_lines(text.peek(BLOCK_BYTES)):
        return text
    return joined(json_lines(io.TextIOWrapper(text, encoding=UTF_8), form.records))


def _with_types(batch: pa.RecordBatch, target: pa.Schema) -> pa.RecordBatch:
    arrays = [_cast(array, field.type) for array, field in zip(batch, target, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=target)


def _cast(array: pa.Array, kind: pa.DataType) -> pa.Array:
    """Convert what was parsed to a type; the parts of nested values on their own, since some have no cast in Arrow."""
    if array.type == kind:
        return array
    mask = array.is_null() if array.null_count else None
    if pa.types.is_struct(kind):
        parts = [_cast(part, kind.field(i).type) for i, part in enumerate(array.flatten())]
        return pa.StructArray.from_arrays(parts, fields=[kind.field(i) for i in range(kind.num_fields)], mask=mask)
    if pa.types.is_map(kind):
        keys, items = array.values.flatten()  # lists of {key, value}, which the parser can read
        keys, items = _cast(keys, kind.key_type), _cast(items, kind.item_type)
        return pa.MapArray.from_arrays(array.offsets, keys, items, type=kind, mask=mask)
    if pa.types.is_list(kind):
        return pa.ListArray.from_arrays(array.offsets, _cast(array.values, kind.value_type), type=kind, mask=mask)
    if pa.types.is_time(kind):  # Arrow parses times only as part of a timestamp
        return pc.binary_join_element_wise("1970-01-01", array, " ").cast(pa.timestamp("us")).cast(kind)
    return array.cast(kind)


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
