"""icefield convert-deletes: replace equality deletes by position deletes."""

import rich_click as click

from icefield.cli.commands.snapshots import summary_number
from icefield.cli.lakes import open_lake
from icefield.cli.options import table_argument, where_option
from icefield.cli.output import counted, print_json, print_text
from icefield.cli.progress import show_progress
from icefield.cli.settings import LakeCommand, Settings

# The keys of the snapshot summary that are reported.
COUNTS = (
    "removed-equality-delete-files",
    "removed-delete-files",
    "added-delete-files",
    "added-position-deletes",
)


@click.command(cls=LakeCommand)
@table_argument()
@where_option()
@click.pass_obj
def convert_deletes(settings: Settings, table: str, where: str | None) -> None:
    """Replace equality deletes by position deletes, or deletion vectors, so that scans are faster. No row changes.

    Deletes that apply to no data file are dropped. With --where, only the deletes of files that may hold matching rows
    are converted.
    """
    with open_lake(settings) as lake:
        opened = lake.table(table)
        with show_progress(f"reading keys of {opened.name}"):
            snapshot = opened.convert_equality_deletes(where)
    found = {key: (summary_number(snapshot, key) or 0) if snapshot else 0 for key in COUNTS}
    if settings.as_json:
        print_json({"table": table, "snapshot-id": str(snapshot.snapshot_id) if snapshot else None, **found})
    elif snapshot is None:
        print_text(f"{table} has no equality deletes to convert")
    else:
        removed = counted(found["removed-equality-delete-files"], "equality delete file")
        positions = counted(found["added-position-deletes"], "position")
        added = counted(found["added-delete-files"], "delete file")
        print_text(f"replaced {removed} of {table} by {positions} in {added} as snapshot {snapshot.snapshot_id}")
