"""icefield query: print rows, through Arrow, without a JVM."""

import csv
import sys
from collections.abc import Callable, Iterator, Sequence

import pyarrow as pa
import rich_click as click

from icefield.cli.lakes import open_lake
from icefield.cli.options import as_of_option, select_option, table_argument, where_option
from icefield.cli.output import Column, json_text, print_grid, talk
from icefield.cli.settings import LakeCommand, Settings
from icefield.cli.values import csv_cell, grid_cell, plain
from icefield.plan.versions import AsOf

GRID_ROWS = 20
Row = tuple[object, ...]


@click.command(cls=LakeCommand)
@table_argument()
@where_option()
@select_option()
@as_of_option()
@click.option(
    "--limit",
    type=click.IntRange(min=0, max=2**63 - 1),
    help=f"The maximum number of rows; 0 is all. [default: {GRID_ROWS} as a table, all as csv and json]",
)
@click.option(
    "--format", "format_", type=click.Choice(["table", "csv", "json"]), help="The output format. [default: table]"
)
@click.pass_obj
def query(  # noqa: PLR0913 - one parameter per option
    settings: Settings,
    table: str,
    where: str | None,
    select: list[str] | None,
    as_of: AsOf | None,
    limit: int | None,
    format_: str | None,
) -> None:
    """Read rows.

    Rows are read with Arrow, in no particular order; no JVM is started.
    """
    form = format_ or ("json" if settings.as_json else "table")
    most = limit if limit is not None else GRID_ROWS if form == "table" else 0
    with open_lake(settings) as lake:
        reader = lake.table(table).scan(where, select, as_of).to_arrow()
        rows = Rows(reader, most)
        WRITERS[form](reader.schema, rows)
    if rows.were_cut:
        talk(f"These are the first {most:,} rows; --limit 0 gives all.")


class Rows:
    """The rows of a reader, up to a limit; 0 means all."""

    def __init__(self, reader: pa.RecordBatchReader, most: int) -> None:
        self._reader = reader
        self._most = most
        self.were_cut = False

    def __iter__(self) -> Iterator[Row]:
        given = 0
        for batch in self._reader:
            take = batch.slice(0, self._most - given) if self._most else batch
            yield from zip(*(column.to_pylist() for column in take.columns), strict=True)
            given += take.num_rows
            if take.num_rows < batch.num_rows:
                self.were_cut = True
                return


def _write_grid(schema: pa.Schema, rows: Rows) -> None:
    columns = [Column(f.name, "right" if _is_number(f.type) else "left") for f in schema]
    print_grid(columns, [[grid_cell(value) for value in row] for row in rows])


def _write_csv(schema: pa.Schema, rows: Rows) -> None:
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(schema.names)
    writer.writerows([csv_cell(value) for value in row] for row in rows)


def _write_json(schema: pa.Schema, rows: Rows) -> None:
    """Write a JSON array with one row per line, so that it can be written and read incrementally."""
    names: Sequence[str] = schema.names
    before = "[\n"
    for row in rows:
        value = {name: plain(cell) for name, cell in zip(names, row, strict=True)}
        sys.stdout.write(before + json_text(value))
        before = ",\n"
    sys.stdout.write("[]\n" if before == "[\n" else "\n]\n")


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


WRITERS: dict[str, Callable[[pa.Schema, Rows], None]] = {"table": _write_grid, "csv": _write_csv, "json": _write_json}
