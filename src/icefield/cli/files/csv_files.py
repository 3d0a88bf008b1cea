"""Read CSV: values as the types of a table, or as types that are inferred from the first block of the file.

An empty cell is null, a quoted empty cell is an empty string.
"""

import io
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from typing import Any

import pyarrow as pa
import pyarrow.csv

from icefield.cli.files.csv_dialect import DELIMITERS
from icefield.cli.files.csv_types import exact_types, is_number
from icefield.cli.files.row_format import CSV, INFERENCE_BYTES, RowFormat, file_type
from icefield.cli.files.streams_of_bytes import BLOCK_BYTES, joined
from icefield.cli.files.value_faults import NO_UTF_8, Fault, FaultFound, first_that_fails, value_fault
from icefield.types.datatypes import NestedField, PrimitiveType
from icefield.types.schema import Schema

_IN_COLUMN = re.compile(r"In CSV column #(\d+): ")
_OTHER_WIDTH = re.compile(r"CSV parse error: (?:Row #\d+: )?Expected (\d+) columns, got (\d+): (.*)", re.DOTALL)


def open_csv(file: pa.NativeFile, table: Schema | None, form: RowFormat) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    """Return the columns of a file, and its rows in batches."""
    if table is None:
        sample, rest = file.read(INFERENCE_BYTES), iter(partial(file.read, BLOCK_BYTES), b"")
        types, source = _inferred(sample, form), joined(chain([sample], rest))
    else:
        types, source = {f.name: file_type(f) for f in _primitives(table)}, file
    reader = _reader(source, types, _names(table, form), form, infers=table is None)
    return reader.schema, iter(reader)


def _inferred(sample: bytes, form: RowFormat) -> Mapping[str, pa.DataType]:
    """Return the types that Arrow must not infer itself."""
    found = _reader(io.BytesIO(sample), {}, [], form, infers=True).schema
    for column in found:
        if pa.types.is_binary(column.type):
            raise FaultFound(Fault(f"column {column.name} has text that is not UTF-8", NO_UTF_8))
    numbers = [f.name for f in found if is_number(f.type)]
    if not numbers or len(set(found.names)) < len(found.names):
        return {}
    as_text = dict.fromkeys(numbers, pa.string())
    reader = _reader(io.BytesIO(sample), as_text, [], form, infers=True, only=numbers)
    first = next(iter(reader), None)
    return {} if first is None else exact_types(found, first)


def find_csv_fault(
    message: str, opened: Callable[[], pa.NativeFile], table: Schema | None, form: RowFormat
) -> Fault | None:
    """Find the cell that Arrow's message is about, by reading the file again; None if it is about something else."""
    if (other := _OTHER_WIDTH.match(message)) is not None:
        wanted, found, row = other.groups()
        reason = f"a row has {found} cells, and the first line {wanted}: {row.strip()[:60]}"
        return Fault(reason, "If cells are separated or quoted otherwise, give --delimiter or --quote")
    if (match := _IN_COLUMN.match(message)) is None or table is None:
        return None
    names = _names(table, form)
    with opened() as file:
        columns = _reader(file, {}, names, form, infers=True).schema.names
    at = int(match[1])
    field = next((f for f in _primitives(table) if f.name == columns[at]), None)
    if field is None:
        return None
    with opened() as file:
        done = 0
        for batch in _reader(file, dict.fromkeys(columns, pa.binary()), names, form, infers=False):
            if (bad := _first_bad_cell(batch.column(at), field, form)) is not None:
                cell = batch.column(at)[bad].as_py()
                try:
                    text = cell.decode()
                except UnicodeDecodeError:
                    reason = f"row {done + bad + 1:,}, column {field.name}: {cell[:60]!r} is not UTF-8"
                    return Fault(reason, NO_UTF_8)
                return value_fault(done + bad + 1, field, text, CSV, form)
            done += batch.num_rows
    return None


def _first_bad_cell(cells: pa.Array, field: NestedField, form: RowFormat) -> int | None:
    """Return the index of the first cell that is not a value of the column, by parsing cells alone."""

    def is_readable(start: int, stop: int) -> bool:
        sink = io.BytesIO()
        try:
            pyarrow.csv.write_csv(pa.table({"x": cells[start:stop].cast(pa.string())}), sink)
            pyarrow.csv.read_csv(
                io.BytesIO(sink.getvalue()),
                parse_options=pyarrow.csv.ParseOptions(newlines_in_values=True, ignore_empty_lines=False),
                convert_options=_conversion({"x": file_type(field)}, form),
            )
        except pa.ArrowInvalid:
            return False
        return True

    return None if is_readable(0, len(cells)) else first_that_fails(len(cells), is_readable)


def _names(table: Schema | None, form: RowFormat) -> Sequence[str]:
    return [] if form.has_header or table is None else table.column_names


def _reader(
    file: Any,
    types: Mapping[str, pa.DataType],
    names: Sequence[str],
    form: RowFormat,
    *,
    infers: bool,
    only: Sequence[str] = (),
) -> pyarrow.csv.CSVStreamingReader:
    return pyarrow.csv.open_csv(
        file,
        read_options=pyarrow.csv.ReadOptions(
            block_size=INFERENCE_BYTES if infers else None,
            column_names=names,
            autogenerate_column_names=not form.has_header and not names,
            encoding=form.encoding,
        ),
        parse_options=pyarrow.csv.ParseOptions(
            delimiter=form.delimiter or DELIMITERS[0], quote_char=form.quote or False, newlines_in_values=True
        ),
        convert_options=_conversion(types, form, only),
    )


def _conversion(
    types: Mapping[str, pa.DataType], form: RowFormat, only: Sequence[str] = ()
) -> pyarrow.csv.ConvertOptions:
    return pyarrow.csv.ConvertOptions(
        column_types=types,
        include_columns=only,
        null_values=list(form.nulls),
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,
        decimal_point=form.decimal,
    )


def _primitives(table: Schema | None) -> Iterator[NestedField]:
    return (f for f in (table.fields if table else ()) if isinstance(f.type, PrimitiveType))
