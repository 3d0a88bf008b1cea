"""icefield query: print rows, through Arrow, without a JVM."""

from typing import Any

import rich_click as click

from icefield.cli.lakes import open_lake
from icefield.cli.options import as_of_option, select_option, table_argument, where_option
from icefield.cli.row_output import limit_options, print_rows
from icefield.cli.settings import LakeCommand, Settings


@click.command(cls=LakeCommand)
@table_argument()
@where_option()
@select_option()
@as_of_option()
@limit_options()
@click.pass_obj
def query(settings: Settings, /, table: str, limit: int | None, format_: str | None, **scanned: Any) -> None:
    """Read rows.

    Rows are read with Arrow, in no particular order; no JVM is started.
    """
    with open_lake(settings) as lake:
        reader = lake.table(table).scan(**scanned).to_arrow()
        print_rows(reader, as_json=settings.as_json, limit=limit, format_=format_)
