"""icefield appends, changed-files: what was added to a table between two versions."""

from typing import TYPE_CHECKING, Any

import rich_click as click

from icefield.cli.lakes import open_lake
from icefield.cli.options import select_option, table_argument, version_argument, where_option
from icefield.cli.output import Column, kebab, print_grid, print_json, short_location, talk
from icefield.cli.row_output import limit_options, print_rows
from icefield.cli.settings import LakeCommand, Settings
from icefield.cli.values import plain
from icefield.showing import format_bytes

if TYPE_CHECKING:
    from icefield.plan.versions import AsOf

CONTENTS = {0: "data", 1: "position deletes", 2: "equality deletes"}
CHANGED_COLUMNS = (
    Column("change"),
    Column("content"),
    Column("rows", "right"),
    Column("size", "right"),
    Column("file"),
)


@click.command(cls=LakeCommand)
@table_argument()
@version_argument("after")
@version_argument("until")
@where_option()
@select_option()
@limit_options()
@click.pass_obj
def appends(settings: Settings, /, table: str, after: "AsOf | None", until: "AsOf | None", **options: Any) -> None:
    """Read the rows that were appended after a version, up to another.

    A version is a snapshot id, a time, a branch or a tag. AFTER is by default the empty table, UNTIL the newest
    version. Rows that were deleted later are read too.
    """
    with open_lake(settings) as lake:
        scan = lake.table(table).scan_appends(after, until, where=options.pop("where"), select=options.pop("select"))
        print_rows(scan.to_arrow(), as_json=settings.as_json, **options)
        talk(f"These are rows up to snapshot {scan.snapshot_id}; name it as AFTER to read those that come next.")


@click.command(cls=LakeCommand)
@table_argument()
@version_argument("after")
@version_argument("until")
@click.pass_obj
def changed_files(settings: Settings, table: str, after: "AsOf | None", until: "AsOf | None") -> None:
    """List the data and delete files that were added and removed between two versions.

    A version is a snapshot id, a time, a branch or a tag. AFTER is by default the empty table, UNTIL the newest
    version.
    """
    with open_lake(settings) as lake:
        handle = lake.table(table)
        rows, location = handle.changed_files(after, until).to_pylist(), handle.location
    if settings.as_json:
        print_json(
            [kebab(plain({**row, "snapshot_id": row["snapshot_id"] and str(row["snapshot_id"])})) for row in rows]
        )
        return
    cells = [
        [
            row["change"],
            CONTENTS.get(row["content"], row["content"]),
            row["record_count"],
            format_bytes(row["file_size_in_bytes"]),
            short_location(row["file_path"], location),
        ]
        for row in rows
    ]
    print_grid(CHANGED_COLUMNS, cells)
