"""icefield explain, files, count: what a scan reads, from metadata where possible."""

from pathlib import Path
from typing import Any

import rich_click as click
from rich.text import Text
from rich.tree import Tree

from icefield.cli.lakes import open_lake
from icefield.cli.options import as_of_option, html_option, select_option, table_argument, where_option
from icefield.cli.output import Column, kebab, print_grid, print_json, print_text, render, safe, short_location
from icefield.cli.pictures.explain_page import render_explanation
from icefield.cli.pictures.page import write_page
from icefield.cli.settings import LakeCommand, Settings
from icefield.cli.values import grid_cell, plain
from icefield.errors import InvalidInput
from icefield.explain.explain import Explanation
from icefield.explain.report_tree import Outline
from icefield.plan.versions import AsOf
from icefield.showing import format_bytes
from icefield.table.reading.readable import nanoseconds_explained, python_values
from icefield.table.scan import TableScan

PARTITION_COLUMNS = (Column("rows", "right"), Column("files", "right"), Column("partition"))
SPLIT_COLUMNS = (Column("task", "right"), Column("start", "right"), Column("size", "right"), Column("file"))
FILE_COLUMNS = (Column("rows", "right"), Column("size", "right"), Column("partition"), Column("file"))


@click.command(cls=LakeCommand)
@table_argument()
@where_option()
@select_option()
@as_of_option()
@click.option(
    "--why", metavar="FILE", help="Explain why this data file is read or pruned; the end of its path is enough."
)
@click.option("--tree", "as_tree", is_flag=True, help="Draw a tree.")
@html_option("what is pruned, step by step,")
@click.pass_obj
def explain(
    settings: Settings, /, table: str, why: str | None, html: Path | None, *, as_tree: bool, **scanned: Any
) -> None:
    """Explain what a query would read, and what prunes the rest."""
    if html is not None and why is not None:
        raise InvalidInput("--html draws a whole query, and --why is about one file", hint="Give one of them")
    with open_lake(settings) as lake:
        scan = lake.table(table).scan(**scanned)
        explanation = scan.explain() if why is None else scan.explain_file(why)
    if html is not None and isinstance(explanation, Explanation):
        write_page(html, render_explanation(explanation))
    if settings.as_json:
        print_json(explanation.as_dict())
    elif as_tree:
        render(draw_outline(explanation.outline()))
    elif html is None:
        print_text(str(explanation))


def draw_outline(outline: Outline) -> Tree:
    """Draw nested lines as a tree."""
    tree = Tree(Text(safe(outline.text), overflow="fold"))
    for part in outline.parts:
        tree.add(draw_outline(part))
    return tree


@click.command(cls=LakeCommand)
@table_argument()
@where_option()
@as_of_option()
@click.option("--splits", is_flag=True, help="List the tasks of a parallel read instead: pieces of files.")
@click.pass_obj
def files(settings: Settings, table: str, where: str | None, as_of: AsOf | None, *, splits: bool) -> None:
    """List the data files that a query would read.

    Paths are relative to the table's location; --json has full locations.
    """
    with open_lake(settings) as lake:
        opened = lake.table(table)
        scan = opened.scan(where, as_of=as_of)
        if splits:
            _show_splits(settings, scan, opened.location)
            return
        rows = scan.files().to_pylist()
        location = opened.location
    if settings.as_json:
        print_json(kebab(rows))
        return
    print_grid(
        FILE_COLUMNS,
        [
            [
                row["record_count"],
                format_bytes(row["file_size_in_bytes"]),
                row["partition"],
                short_location(row["file_path"], location),
            ]
            for row in rows
        ],
    )


@click.command(cls=LakeCommand)
@table_argument()
@where_option()
@as_of_option()
@click.option("--by-partition", is_flag=True, help="Count the rows and files of each partition.")
@click.pass_obj
def count(settings: Settings, table: str, where: str | None, as_of: AsOf | None, *, by_partition: bool) -> None:
    """Count rows. Only files that metadata cannot answer for are opened."""
    with open_lake(settings) as lake:
        scan = lake.table(table).scan(where, as_of=as_of)
        if by_partition:
            _show_partitions(settings, python_values(scan.count_by_partition()))
            return
        rows = scan.count()
    if settings.as_json:
        snapshot = scan.snapshot_id
        print_json({"table": table, "snapshot-id": None if snapshot is None else str(snapshot), "count": rows})
    else:
        print_text(str(rows))


@click.command(cls=LakeCommand)
@table_argument()
@click.argument("columns", metavar="COLUMN...", nargs=-1, required=True)
@where_option()
@as_of_option()
@click.pass_obj
def min_max(settings: Settings, table: str, columns: tuple[str, ...], where: str | None, as_of: AsOf | None) -> None:
    """Show the least and the greatest value of columns. Only files that metadata cannot answer for are opened."""
    with open_lake(settings) as lake:
        scan = lake.table(table).scan(where, as_of=as_of)
        with nanoseconds_explained():
            found = [(column, scan.min(column).as_py(), scan.max(column).as_py()) for column in columns]
    if settings.as_json:
        print_json([{"column": column, "min": plain(least), "max": plain(most)} for column, least, most in found])
    else:
        titles = [Column("column"), Column("min"), Column("max")]
        print_grid(titles, [[column, grid_cell(least), grid_cell(most)] for column, least, most in found])


def _show_partitions(settings: Settings, rows: list[dict[str, Any]]) -> None:
    if settings.as_json:
        print_json([kebab({**row, "partition": plain(row["partition"])}) for row in rows])
    else:
        print_grid(
            PARTITION_COLUMNS, [[row["record_count"], row["file_count"], grid_cell(row["partition"])] for row in rows]
        )


def _show_splits(settings: Settings, scan: TableScan, location: str) -> None:
    tasks = [[(each.location, each.start, each.length) for each in task] for task in scan.splits()]
    if settings.as_json:
        names = ("file", "start", "length")
        print_json([[dict(zip(names, each, strict=True)) for each in task] for task in tasks])
        return
    rows = [
        [number, start, format_bytes(length), short_location(file, location)]
        for number, task in enumerate(tasks, 1)
        for file, start, length in task
    ]
    print_grid(SPLIT_COLUMNS, rows)
