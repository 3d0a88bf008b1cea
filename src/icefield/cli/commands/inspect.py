"""icefield inspect: print the rows of a metadata table."""

import rich_click as click

from icefield.cli.lakes import open_lake
from icefield.cli.options import as_of_option, select_option, table_argument, where_option
from icefield.cli.output import talk
from icefield.cli.row_output import GRID_ROWS, WRITERS, Rows
from icefield.cli.settings import LakeCommand, Settings
from icefield.plan.versions import AsOf


@click.command(cls=LakeCommand)
@table_argument()
@click.argument("name", metavar="NAME")
@where_option()
@select_option()
@as_of_option()
@click.option(
    "--limit",
    type=click.IntRange(min=0, max=2**63 - 1),
    help=f"The maximum number of rows; 0 is all. [default: {GRID_ROWS} as a table, all as json]",
)
@click.pass_obj
def inspect(  # noqa: PLR0913 - one parameter per option
    settings: Settings,
    table: str,
    name: str,
    where: str | None,
    select: list[str] | None,
    as_of: AsOf | None,
    limit: int | None,
) -> None:
    """Read a metadata table.

    NAME is one of files, data_files, delete_files, entries, manifests, partitions, position_deletes (of one version),
    snapshots, history, refs, metadata_log_entries, schemas, properties, all_files, all_data_files, all_delete_files,
    all_entries, all_manifests (of the whole table).
    """
    form = "json" if settings.as_json else "table"
    most = limit if limit is not None else GRID_ROWS if form == "table" else 0
    with open_lake(settings) as lake:
        reader = lake.table(table).inspect(name, where=where, select=select, as_of=as_of).to_arrow()
        rows = Rows(reader, most)
        WRITERS[form](reader.schema, rows)
    if rows.were_cut:
        talk(f"These are the first {most:,} rows; --limit 0 gives all.")
