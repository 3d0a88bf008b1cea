"""icefield diff, log: compare two versions of a table; show its snapshots as a graph."""

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import rich_click as click

from icefield.arguments import whole_number
from icefield.cli.lakes import open_lake
from icefield.cli.options import table_argument
from icefield.cli.output import Column, moment, print_grid, print_json, print_section, print_text, talk
from icefield.cli.settings import LakeCommand, Settings
from icefield.history.diff import VersionDiff
from icefield.history.log import LogEntry, list_log
from icefield.history.log_page import render_log

if TYPE_CHECKING:
    from icefield.plan.versions import AsOf

LOG_COLUMNS = (Column("snapshot", "right"), Column("committed"), Column("operation"), Column("refs"), Column(""))


@click.command(cls=LakeCommand)
@table_argument()
@click.argument("before", metavar="BEFORE")
@click.argument("after", metavar="[AFTER]", required=False)
@click.option(
    "--rows", metavar="N", type=click.IntRange(0), default=5, show_default=True, help="How many rows to show."
)
@click.pass_obj
def diff(settings: Settings, table: str, before: str, after: str | None, rows: int) -> None:
    """Compare two versions of a table: rows, files, columns, properties, partition spec.

    A version is a snapshot id, a time, a branch or a tag; AFTER is by default the head of main. Rows that were only
    moved to another file, as by compaction, are not shown.
    """
    with open_lake(settings) as lake:
        found = lake.table(table).diff(_version(before), None if after is None else _version(after))
        shown = {"added": _some(found.added(), rows), "removed": _some(found.removed(), rows)}
        if settings.as_json:
            print_json({**found.as_dict(), "sample": {change: _plain(each) for change, each in shown.items()}})
        else:
            _print_diff(found, shown)


@click.command(cls=LakeCommand)
@table_argument()
@click.option("--graph", is_flag=True, help="Draw which snapshots descend from which.")
@click.option("--html", metavar="FILE", type=click.Path(path_type=Path), help="Write the graph as an HTML page.")
@click.pass_obj
def log(settings: Settings, table: str, *, graph: bool, html: Path | None) -> None:
    """List the snapshots of all branches, newest first."""
    with open_lake(settings) as lake:
        entries = list_log(lake.table(table).metadata)
    if html is not None:
        html.write_text(render_log(table, entries), encoding="utf-8")
        talk(f"Wrote {html}.")
    if settings.as_json:
        print_json([entry.as_dict() for entry in entries])
    elif graph:
        _print_graph(entries)
    elif html is None:
        print_grid(LOG_COLUMNS, [_log_row(entry) for entry in entries])


def _version(text: str) -> "AsOf":
    number = whole_number(text)
    return text if number is None else number


def _some(batches: pa.RecordBatchReader, count: int) -> pa.Table:
    held, left = [], count
    for batch in batches:
        if left <= 0:
            break
        held.append(batch.slice(0, left))
        left -= held[-1].num_rows
    return pa.Table.from_batches(held, batches.schema)


def _plain(rows: pa.Table) -> list[dict[str, object]]:
    return [{name: _text(value) for name, value in row.items()} for row in rows.to_pylist()]


def _text(value: object) -> object:
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


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
    sample = [
        [sign, *row.values()]
        for sign, change in (("-", "removed"), ("+", "added"))
        for row in shown[change].to_pylist()
    ]
    if sample:
        print_text("")
        print_grid([Column(""), *(Column(name) for name in shown["added"].column_names)], sample)


def _print_graph(entries: list[LogEntry]) -> None:
    width = max((len(entry.graph()) for entry in entries), default=0)
    for entry in entries:
        refs = f" ({', '.join(entry.refs)})" if entry.refs else ""
        when, snapshot = moment(entry.snapshot.timestamp_ms), entry.snapshot
        note = f"  {entry.note}" if entry.note else ""
        print_text(f"{entry.graph():<{width}}  {snapshot.snapshot_id} {when} {snapshot.operation}{refs}{note}")
        if (edges := entry.edges()) is not None:
            print_text(edges)


def _log_row(entry: LogEntry) -> list[object]:
    snapshot = entry.snapshot
    return [
        str(snapshot.snapshot_id),
        moment(snapshot.timestamp_ms),
        snapshot.operation,
        ", ".join(entry.refs),
        entry.note,
    ]
