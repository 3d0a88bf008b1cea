"""icefield query: print rows, through Arrow, without a JVM."""

import rich_click as click

from icefield.cli.lakes import open_lake
from icefield.cli.options import as_of_option, select_option, table_argument, where_option
from icefield.cli.output import talk
from icefield.cli.row_output import GRID_ROWS, WRITERS, Rows
from icefield.cli.settings import LakeCommand, Settings
from icefield.plan.versions import AsOf


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
