"""icefield explain, files, count: what a scan reads, from metadata where possible."""

from typing import Any

import rich_click as click
from rich.text import Text
from rich.tree import Tree

from icefield.cli.lakes import open_lake
from icefield.cli.options import as_of_option, select_option, table_argument, where_option
from icefield.cli.output import Column, kebab, print_grid, print_json, print_text, render, safe, short_location
from icefield.cli.settings import LakeCommand, Settings
from icefield.explain.explain import format_bytes
from icefield.explain.report_tree import Outline
from icefield.plan.versions import AsOf

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
@click.pass_obj
def explain(settings: Settings, /, table: str, why: str | None, *, as_tree: bool, **scanned: Any) -> None:
    """Explain what a query would read, and what prunes the rest."""
    with open_lake(settings) as lake:
        scan = lake.table(table).scan(**scanned)
        explanation = scan.explain() if why is None else scan.explain_file(why)
    if settings.as_json:
        print_json(explanation.as_dict())
    elif as_tree:
        render(draw_outline(explanation.outline()))
    else:
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
@click.pass_obj
def files(settings: Settings, table: str, where: str | None, as_of: AsOf | None) -> None:
    """List the data files that a query would read.

    Paths are relative to the table's location; --json has full locations.
    """
    with open_lake(settings) as lake:
        opened = lake.table(table)
        rows = opened.scan(where, as_of=as_of).files().to_pylist()
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
@click.pass_obj
def count(settings: Settings, table: str, where: str | None, as_of: AsOf | None) -> None:
    """Count rows. Only files that metadata cannot answer for are opened."""
    with open_lake(settings) as lake:
        scan = lake.table(table).scan(where, as_of=as_of)
        rows = scan.count()
    if settings.as_json:
        snapshot = scan.snapshot_id
        print_json({"table": table, "snapshot-id": None if snapshot is None else str(snapshot), "count": rows})
    else:
        print_text(str(rows))
