"""icefield add-files: add existing Parquet files to a table, without copying them."""

from pathlib import Path

import rich_click as click

from icefield.cli.lakes import open_branch, open_lake
from icefield.cli.options import branch_option, table_argument
from icefield.cli.output import counted, print_json, print_text
from icefield.cli.pairs import parse_pairs
from icefield.cli.progress import show_progress
from icefield.cli.settings import Settings, SnapshotCommand
from icefield.cli.snapshot_facts import summary_number


@click.command(cls=SnapshotCommand)
@table_argument()
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--partition",
    metavar="FIELD=VALUE",
    multiple=True,
    callback=parse_pairs,
    help="The partition of the files, if neither their path nor their statistics show it. May be repeated.",
)
@branch_option()
@click.pass_obj
def add_files(
    settings: Settings, table: str, files: tuple[Path, ...], *, partition: dict[str, str], branch: str
) -> None:
    """Add Parquet files that another program wrote. No row is read or copied; the files stay where they are.

    A directory means all Parquet files below it. Columns are matched by field id, or else by name. The files must be in
    the lake's directory, or in one that --root names.
    """
    with open_lake(settings) as lake:
        opened = open_branch(lake, table, branch)
        with show_progress(f"reading footers for {opened.name}"):
            snapshot = opened.add_files(files, partition=partition)
    rows, count = (
        (summary_number(snapshot, name) or 0) if snapshot else 0 for name in ("added-records", "added-data-files")
    )
    identity = str(snapshot.snapshot_id) if snapshot else None
    if settings.as_json:
        print_json({"table": table, "snapshot-id": identity, "rows": rows, "data-files": count})
    else:
        print_text(f"added {counted(count, 'file')} with {counted(rows, 'row')} to {table} as snapshot {identity}")
