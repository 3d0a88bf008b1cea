"""Read files of rows as streams of Arrow batches: Parquet, CSV, JSON Lines, also compressed.

CSV and JSON have no types of their own: with a table's schema, values are read as its types; without one, types are
inferred from the first block of the file. In CSV an empty cell is null and a quoted empty cell is an empty string.
Raises InvalidInput with the path of a file that cannot be read.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet

from icefield.cli.files.csv_dialect import SAMPLE_BYTES, find_delimiter
from icefield.cli.files.csv_files import find_csv_fault, open_csv
from icefield.cli.files.json_files import find_json_fault, open_json
from icefield.cli.files.row_format import BY_NAME, COMPRESSED, CSV, JSON, PARQUET, RowFormat, kind_of
from icefield.cli.files.streams_of_bytes import MARK_BYTES, UTF_8, marked_encoding
from icefield.cli.files.value_faults import NO_UTF_8, Fault, FaultFound, has_decimal_comma
from icefield.errors import IcefieldError, InvalidInput
from icefield.types.schema import Schema

BATCH_ROWS = 65_536
MOST_LOOKED_AT = 1_000


def row_file_schema(path: Path, table: Schema | None, form: RowFormat = BY_NAME) -> pa.Schema:
    """Read the Arrow schema of a file."""
    with _faults_of(path, table, form), _open(path) as file:
        columns = _OPENERS[kind_of(path, form)](file, table, _found_out(path, form))[0]
    if twice := sorted({name for name in columns.names if columns.names.count(name) > 1}):
        raise InvalidInput(f"{path} has several columns of the name {twice[0]}", hint="Names of columns must be unique")
    return columns


def read_row_file(path: Path, table: Schema | None, form: RowFormat = BY_NAME) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a file in batches."""
    with _faults_of(path, table, form), _open(path) as file:
        batches = _OPENERS[kind_of(path, form)](file, table, _found_out(path, form))[1]
        while (batch := next(batches, None)) is not None:
            yield batch


def sniffed_delimiter(path: Path, form: RowFormat) -> str | None:
    """Return the delimiter that is found in a file; None if it is given, or the file is not CSV."""
    if form.delimiter is not None or kind_of(path, form) != CSV:
        return None
    with _faults_of(path, None, form), _open(path) as file:
        sample = bytes(file.read(SAMPLE_BYTES))
        encoding = _encoding(sample, form)
        return find_delimiter(sample.decode(encoding, errors="replace"), form.quote)


def columns_with_decimal_commas(path: Path, form: RowFormat) -> list[str]:
    """Return the columns of a CSV file that would be text, and whose first values all have decimal commas."""
    first = next(read_row_file(path, None, form), None)
    found: list[str] = []
    if first is None:
        return found
    for field in first.schema:
        if pa.types.is_string(field.type):
            strings = [each for each in first.column(field.name)[:MOST_LOOKED_AT].to_pylist() if each is not None]
            if strings and all(map(has_decimal_comma, strings)):
                found.append(field.name)
    return found


def _found_out(path: Path, form: RowFormat) -> RowFormat:
    if kind_of(path, form) == PARQUET:
        return form
    sniffed = sniffed_delimiter(path, form)
    with _open(path) as file:
        encoding = _encoding(bytes(file.read(MARK_BYTES)), form)
    return replace(form, delimiter=form.delimiter if sniffed is None else sniffed, encoding=encoding)


def _encoding(beginning: bytes, form: RowFormat) -> str:
    return (marked_encoding(beginning) if form.encoding == UTF_8 else None) or form.encoding


Opened = tuple[pa.Schema, Iterator[pa.RecordBatch]]


def _open_parquet(file: pa.NativeFile, _: Schema | None, __: RowFormat) -> Opened:
    parquet = pyarrow.parquet.ParquetFile(file)
    return parquet.schema_arrow, parquet.iter_batches(batch_size=BATCH_ROWS)


_OPENERS: dict[str, Callable[[pa.NativeFile, Schema | None, RowFormat], Opened]] = {
    PARQUET: _open_parquet,
    CSV: open_csv,
    JSON: open_json,
}


_FINDERS: dict[str, Callable[[str, Callable[[], pa.NativeFile], Schema | None, RowFormat], Fault | None]] = {
    CSV: find_csv_fault,
    JSON: find_json_fault,
}


def _open(path: Path) -> pa.NativeFile:
    if path.suffix.lower() in COMPRESSED:
        return pa.input_stream(str(path), compression="detect")
    return pa.memory_map(str(path)) if path.suffix.lower() == ".parquet" else pa.input_stream(str(path))


@contextmanager
def _faults_of(path: Path, table: Schema | None, form: RowFormat) -> Iterator[None]:
    try:
        if path.is_dir():
            raise InvalidInput(f"cannot read {path}: it is a directory", hint="Name its files, such as DIR/*.parquet")
        yield
    except IcefieldError:
        raise
    except FileNotFoundError as error:
        raise InvalidInput(f"no such file: {path}") from error
    except (pa.ArrowException, OSError, LookupError, ValueError, RecursionError) as error:
        reason, hint = _fault(error, path, table, form)
        raise InvalidInput(f"cannot read {path}: {reason}", hint=hint) from error


def _fault(error: Exception, path: Path, table: Schema | None, form: RowFormat) -> Fault:
    if isinstance(error, FaultFound):
        return error.fault
    if isinstance(error, UnicodeDecodeError):
        return Fault(f"it is not text in {form.encoding}: {error.reason}", NO_UTF_8)
    found = _find_fault(str(error), path, table, form) if isinstance(error, pa.ArrowException) else None
    return found or Fault(str(error).strip(), None)


def _find_fault(message: str, path: Path, table: Schema | None, form: RowFormat) -> Fault | None:
    """Find out which value a message of Arrow is about; None if the file cannot be read again either."""
    find = _FINDERS.get(kind_of(path, form))
    try:
        return find(message, partial(_open, path), table, _found_out(path, form)) if find else None
    except (pa.ArrowException, OSError, ValueError, RecursionError):
        return None
