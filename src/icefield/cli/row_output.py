"""Write rows to stdout or to a file: as a table that fits the terminal, as CSV, JSON or Parquet.

A table is for people: long values are cut, and on a terminal also columns that would not fit. CSV and JSON have all of
every value, one row per line.
"""

import os
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any, TextIO, TypeVar

import pyarrow as pa
import pyarrow.parquet
import rich_click as click

from icefield.cli.output import Column, json_text, print_grid, talk
from icefield.cli.values import csv_cell, grid_cell, plain
from icefield.errors import InvalidInput
from icefield.table.reading.readable import python_values

F = TypeVar("F", bound=Callable[..., Any])
GRID_ROWS = 20
PARQUET = "parquet"
EMPTY_CELL = '""'
_SPECIAL = re.compile('[",\r\n]')

Row = tuple[object, ...]


class Rows:
    """The rows of a reader, up to a limit; 0 means all."""

    def __init__(self, reader: pa.RecordBatchReader, most: int) -> None:
        self._reader = reader
        self._most = most
        self.count = 0
        self.were_cut = False

    def __iter__(self) -> Iterator[Row]:
        for batch in self._reader:
            take = batch.slice(0, self._most - self.count) if self._most else batch
            yield from zip(*map(python_values, take.columns), strict=True)
            self.count += take.num_rows
            if take.num_rows < batch.num_rows:
                self.were_cut = True
                return


def write_grid(schema: pa.Schema, rows: Rows) -> None:
    """Write a table to stdout; on a terminal that is too narrow, columns are cut, or each row is a block of lines."""
    columns = [Column(field.name, "right" if _is_number(field.type) else "left") for field in schema]
    print_grid(columns, [[grid_cell(value) for value in row] for row in rows])


def write_csv(schema: pa.Schema, rows: Rows, stream: TextIO | None = None) -> None:
    """Write CSV with a header. Null is an empty cell, and an empty string a quoted one, as ingest reads them."""
    target = stream or sys.stdout
    for row in chain([schema.names], rows):
        line = ",".join("" if value is None else _quoted(csv_cell(value)) for value in row)
        target.write(f"{line or EMPTY_CELL}\n")  # readers skip an empty line


def _quoted(text: str) -> str:
    """Quote a cell where a reader would take it for something else; an unquoted empty one is null."""
    if not text:
        return EMPTY_CELL
    escaped = text.replace('"', '""')
    return f'"{escaped}"' if _SPECIAL.search(text) else text


def write_json(schema: pa.Schema, rows: Rows, stream: TextIO | None = None) -> None:
    """Write a JSON array with one row per line, so that it can be written and read incrementally."""
    names: Sequence[str] = schema.names
    _refuse_same_names(names)
    out = stream or sys.stdout
    before = "[\n"
    for row in rows:
        value = {name: plain(cell) for name, cell in zip(names, row, strict=True)}
        out.write(before + json_text(value))
        before = ",\n"
    out.write("[]\n" if before == "[\n" else "\n]\n")


WRITERS: dict[str, Callable[[pa.Schema, Rows], None]] = {"table": write_grid, "csv": write_csv, "json": write_json}
FILE_WRITERS: dict[str, Callable[[pa.Schema, Rows, TextIO], None]] = {"csv": write_csv, "json": write_json}


def limit_options() -> Callable[[F], F]:
    """How many rows are printed, and in which format."""

    def decorate(command: F) -> F:
        limit = click.option(
            "--limit",
            type=click.IntRange(min=0, max=2**63 - 1),
            help=f"The maximum number of rows; 0 is all. [default: {GRID_ROWS} as a table, all as csv and json]",
        )
        form = click.option("--format", "format_", type=click.Choice(list(WRITERS)), help="The output format.")
        return limit(form(command))

    return decorate


def print_rows(reader: pa.RecordBatchReader, *, as_json: bool, limit: int | None, format_: str | None) -> None:
    """Print rows, and say if there are more."""
    form = format_ or ("json" if as_json else "table")
    most = limit if limit is not None else GRID_ROWS if form == "table" else 0
    rows = Rows(reader, most)
    WRITERS[form](reader.schema, rows)
    if rows.were_cut:
        talk(f"These are the first {most:,} rows; --limit 0 gives all.")


def write_file(path: Path, form: str, reader: pa.RecordBatchReader) -> int:
    """Write all rows to a file, which is there only once it is complete. Return how many there are."""
    with _new_file(path) as part:
        if form == PARQUET:
            return _write_parquet(part, reader)
        rows = Rows(reader, 0)
        with part.open("w", encoding="utf-8", newline="") as stream:
            FILE_WRITERS[form](reader.schema, rows, stream)
        return rows.count


@contextmanager
def _new_file(path: Path) -> Iterator[Path]:
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        yield part
        part.replace(path)
    except OSError as error:
        raise InvalidInput(f"cannot write {path}: {error.strerror}") from error
    finally:
        part.unlink(missing_ok=True)


def _write_parquet(path: Path, reader: pa.RecordBatchReader) -> int:
    _refuse_same_names(reader.schema.names)
    count = 0
    with pyarrow.parquet.ParquetWriter(path, reader.schema, compression="zstd") as writer:
        for batch in reader:
            writer.write_batch(batch)
            count += batch.num_rows
    return count


def _refuse_same_names(names: Sequence[str]) -> None:
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise InvalidInput(f"two columns are called {twice[0]!r}", hint="Give one of them an alias, or write CSV")


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))
