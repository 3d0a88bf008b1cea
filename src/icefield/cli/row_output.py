"""Write rows to stdout or to a file: as a table that fits the terminal, as CSV, JSON or Parquet.

A table is for people: long values are cut, and on a terminal also columns that would not fit. CSV and JSON have all of
every value, one row per line.
"""

import csv
import os
import shutil
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

import pyarrow as pa
import pyarrow.parquet

from icefield.cli.output import Column, json_text, print_grid, print_text
from icefield.cli.values import csv_cell, grid_cell, plain
from icefield.errors import InvalidInput

GRID_ROWS = 20
PARQUET = "parquet"

Row = tuple[object, ...]

# A column that is cut keeps at least so many characters; with less, each row is shown as lines of its own.
_LEAST_WIDTH = 8
_GAP = 2


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
            yield from zip(*(column.to_pylist() for column in take.columns), strict=True)
            self.count += take.num_rows
            if take.num_rows < batch.num_rows:
                self.were_cut = True
                return


def write_grid(schema: pa.Schema, rows: Rows) -> None:
    """Write a table to stdout; on a terminal that is too narrow, columns are cut, or each row is a block of lines."""
    titles = schema.names
    cells = [[grid_cell(value) for value in row] for row in rows]
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    widths = fitted_widths(titles, cells, width)
    if widths is None:
        print_text("\n".join(_block(titles, number, row) for number, row in enumerate(cells, 1)))
        return
    columns = [
        Column(_cut(title, most), "right" if _is_number(f.type) else "left")
        for title, most, f in zip(titles, widths, schema, strict=True)
    ]
    print_grid(columns, [[_cut(cell, most) for cell, most in zip(row, widths, strict=True)] for row in cells])


def fitted_widths(titles: Sequence[str], rows: Sequence[Sequence[str]], width: int | None) -> list[int] | None:
    """Return the width of each column so that a line has at most `width` characters; None if that is not possible.

    The widest columns are cut first.
    """
    widths = [max([len(title), *(len(row[at]) for row in rows)]) for at, title in enumerate(titles)]
    if width is None or not widths:
        return widths
    excess = sum(widths) + _GAP * (len(widths) - 1) - width
    while excess > 0:
        widest = max(widths)
        if widest <= _LEAST_WIDTH:
            return None
        at = [index for index, each in enumerate(widths) if each == widest]
        below = max([_LEAST_WIDTH, *(each for each in widths if each < widest)])
        step = max(1, min(widest - below, -(-excess // len(at))))
        for index in at:
            widths[index] -= step
        excess -= step * len(at)
    return widths


def write_csv(schema: pa.Schema, rows: Rows, stream: TextIO | None = None) -> None:
    """Write CSV with a header."""
    writer = csv.writer(stream or sys.stdout, lineterminator="\n")
    writer.writerow(schema.names)
    writer.writerows([csv_cell(value) for value in row] for row in rows)


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


def _block(titles: Sequence[str], number: int, row: Sequence[str]) -> str:
    widest = max(map(len, titles))
    lines = [f"{title:<{widest}}  {cell}" for title, cell in zip(titles, row, strict=True)]
    return "\n".join([f"row {number}", *lines])


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))
