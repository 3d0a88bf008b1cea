"""icefield diff, log: compare two versions of a table; show its snapshots as a graph."""

from __future__ import annotations

from pathlib import Path

import rich_click as click

from icefield.cli.options import html_option, table_argument, version_argument
from icefield.cli.output import Column, moment, print_grid, print_json, print_section, print_text, safe
from icefield.cli.settings import LakeCommand, Settings
from icefield.deferred import deferred_imports

with deferred_imports(__name__):
    import pyarrow as pa

    from icefield.cli.lakes import open_lake
    from icefield.cli.pictures.diff_page import render_diff
    from icefield.cli.pictures.log_page import render_log
    from icefield.cli.pictures.page import write_page
    from icefield.cli.values import grid_cell, plain
    from icefield.history.diff import VersionDiff
    from icefield.history.log import LogEntry
    from icefield.table.reading.readable import python_values

MOST_PARTITIONS = 20  # that the text shows
LOG_COLUMNS = (Column("snapshot", "right"), Column("committed"), Column("operation"), Column("refs"), Column(""))


@click.command(cls=LakeCommand)
@table_argument()
@click.argument("before", metavar="BEFORE")
@version_argument("after")
@click.option(
    "--rows", metavar="N", type=click.IntRange(0), default=5, show_default=True, help="How many rows to show."
)
@html_option("the difference")
@click.pass_obj
def diff(settings: Settings, table: str, before: str, after: str | None, rows: int, html: Path | None) -> None:
    """Compare two versions of a table: rows, files, partitions, columns, properties, partition spec.

    A version is a snapshot id, a time, a branch or a tag; AFTER is by default the head of main. Rows that were only
    moved to another file, as by compaction, are not shown.
    """
    with open_lake(settings) as lake:
        found = lake.table(table).diff(before, after)
        shown = {"added": _some(found.added(), rows), "removed": _some(found.removed(), rows)}
        if html is not None:
            plain = {change: _plain(shown[change]) for change in ("removed", "added")}
            write_page(html, render_diff(table, found, shown["added"].column_names, plain))
        if settings.as_json:
            print_json({**found.as_dict(), "sample": {change: _plain(each) for change, each in shown.items()}})
        elif html is None:
            _print_diff(found, shown)


@click.command(cls=LakeCommand)
@table_argument()
@click.option("--ref", metavar="REF", help="Only the snapshots that a branch or tag was made from.")
@click.option("--graph", is_flag=True, help="Draw which snapshots descend from which.")
@html_option("the graph")
@click.pass_obj
def log(settings: Settings, table: str, *, ref: str | None, graph: bool, html: Path | None) -> None:
    """List the snapshots of all branches, or of one, newest first."""
    with open_lake(settings) as lake:
        entries = lake.table(table).log(ref)
    if html is not None:
        write_page(html, render_log(table, entries))
    if settings.as_json:
        print_json([entry.as_dict() for entry in entries])
    elif graph:
        for line in graph_lines(entries):
            print_text(line)
    elif html is None:
        print_grid(LOG_COLUMNS, [_log_row(entry) for entry in entries])


def _some(batches: pa.RecordBatchReader, count: int) -> pa.Table:
    held, left = [], count
    for batch in batches:
        if left <= 0:
            break
        held.append(batch.slice(0, left))
        left -= held[-1].num_rows
    return pa.Table.from_batches(held, batches.schema)


def _plain(rows: pa.Table) -> list[dict[str, object]]:
    return [{name: plain(value) for name, value in row.items()} for row in python_values(rows)]


def _print_diff(found: VersionDiff, shown: dict[str, pa.Table]) -> None:
    facts = found.as_dict()
    for title in ("rows", "data-files", "delete-files"):
        counts = facts[title]
        assert isinstance(counts, dict)
        print_text(f"{title.replace('-', ' ')}: {counts['added']:,} added, {counts['removed']:,} removed")
    for title in ("columns", "properties"):
        changes = facts[title]
        if isinstance(changes, dict):
            rows = [[word, text] for word, lines in changes.items() for text in lines]
            print_section(title, rows)
    if (specs := found.partition_spec()) is not None:
        print_section("partition spec", [["before", specs[0]], ["after", specs[1]]])
    if partitions := found.partitions():
        lines = [[name, f"{n['added']:,} added, {n['removed']:,} removed"] for name, n in partitions.items()]
        more = [["…", f"and {len(lines) - MOST_PARTITIONS:,} more"]] if len(lines) > MOST_PARTITIONS else []
        print_section("rows by partition", [*lines[:MOST_PARTITIONS], *more])
    sample = [
        [sign, *map(grid_cell, row.values())]
        for sign, change in (("-", "removed"), ("+", "added"))
        for row in python_values(shown[change])
    ]
    if sample:
        print_text("")
        print_grid([Column(""), *(Column(name) for name in shown["added"].column_names)], sample)


def graph_lines(entries: list[LogEntry]) -> list[str]:
    """Draw the log as a graph, in text."""
    width = max((len(entry.graph()) for entry in entries), default=0)
    lines = []
    for entry in entries:
        refs = f" ({', '.join(entry.refs)})" if entry.refs else ""
        when, snapshot = moment(entry.snapshot.timestamp_ms), entry.snapshot
        note = f"  {entry.note}" if entry.note else ""
        text = f"{snapshot.snapshot_id} {when} {snapshot.operation}{refs}{note}"
        lines.append(f"{entry.graph():<{width}}  {safe(text)}")
        if (edges := entry.edges()) is not None:
            lines.append(edges)
    return lines


def _log_row(entry: LogEntry) -> list[object]:
    snapshot = entry.snapshot
    return [
        str(snapshot.snapshot_id),
        moment(snapshot.timestamp_ms),
        snapshot.operation,
        ", ".join(entry.refs),
        entry.note,
    ]
