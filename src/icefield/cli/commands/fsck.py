"""icefield fsck, report: check that the metadata of tables is true; report what they store."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

import rich_click as click

from icefield.cli.lakes import open_lake
from icefield.cli.options import html_option
from icefield.cli.output import counted, kebab, print_json, print_text, talk
from icefield.cli.pictures.layout import load_layout
from icefield.cli.pictures.page import write_page
from icefield.cli.pictures.report_page import render_report
from icefield.cli.progress import show_progress
from icefield.cli.questions import confirm
from icefield.cli.settings import LakeCommand, Settings, SnapshotCommand
from icefield.commit.relocate import Progress
from icefield.errors import InvalidInput
from icefield.fsck.finding import LakeFsck
from icefield.lake import Lake

UNHEALTHY = 1
SEVERAL = 2
MOST_PICTURES = 20  # tables with pictures of their own on a page


@click.command(cls=SnapshotCommand)
@click.argument("tables", metavar="[TABLE]...", nargs=-1)
@click.option("--deep", is_flag=True, help="Also open every data and delete file, to compare its rows with metadata.")
@click.option(
    "--together",
    is_flag=True,
    help="The tables are changed one after another under the same idempotency keys: report what only some have.",
)
@click.option("--repair", is_flag=True, help="Repair what can be repaired without losing anything.")
@click.option(
    "--drop-file",
    "drop_files",
    metavar="LOCATION",
    multiple=True,
    help="With --repair: remove this missing data file, and its rows, from the table. May be repeated.",
)
@click.option("--dry-run", is_flag=True, help="With --repair: show what would be repaired, and change nothing.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.pass_obj
def fsck(  # noqa: PLR0913 - one parameter per option
    settings: Settings,
    tables: tuple[str, ...],
    *,
    deep: bool,
    together: bool,
    repair: bool,
    drop_files: tuple[str, ...],
    dry_run: bool,
    yes: bool,
) -> int | None:
    """Check that every file of every snapshot exists, and that what metadata says of it is true.

    Without TABLE, all tables of the lake are checked. Readers and writers go on. The exit code is 1 if anything is
    wrong that is not harmless.
    """
    if (dry_run or drop_files) and not repair:
        raise InvalidInput("--dry-run and --drop-file are for repairs", hint="Give --repair too")
    if drop_files and len(tables) != 1:
        raise InvalidInput("--drop-file is for one table", hint="Name the table")
    with open_lake(settings) as lake:

        def run(*, dry: bool) -> LakeFsck:
            if drop_files:
                found = lake.table(tables[0]).fsck(deep=deep, repair=True, dry_run=dry, drop_files=drop_files)
                return LakeFsck([found])
            options = {"deep": deep, "together": together, "repair": repair, "dry_run": dry and repair}
            with _each_table(lake, tables, "checking") as seen:
                return lake.fsck(tables or None, **options, progress=seen)

        result = run(dry=repair)
        planned = sum(len(table.repairs) for table in result.tables)
        if planned and not dry_run:
            if not yes:
                talk(str(result))
                confirm(f"Make {counted(planned, 'repair')}?", "nothing was changed")
            result = run(dry=False)
        elif not dry_run:
            result = replace(result, tables=[replace(table, is_dry_run=False) for table in result.tables])
    if settings.as_json:
        print_json(result.as_dict())
    else:
        print_text(str(result) or "there are no tables")
    return None if result.is_healthy else UNHEALTHY


@click.command(cls=LakeCommand)
@click.argument("tables", metavar="[TABLE]...", nargs=-1)
@click.option("--price", metavar="AMOUNT", type=float, help="What a gigabyte costs in a month, to report money too.")
@html_option("shares, partitions and file sizes")
@click.pass_obj
def report(settings: Settings, tables: tuple[str, ...], price: float | None, html: Path | None) -> int | None:
    """Report what tables store: live files, history, files that wait for deletion, and orphan files.

    Without TABLE, all tables of the lake. Nothing is changed. The exit code is 1 if a table cannot be measured; the
    others are reported.
    """
    with open_lake(settings) as lake:
        if len(tables) == 1:  # not by how many tables the lake has
            found = lake.table(tables[0]).report(price=price)
        else:
            with _each_table(lake, tables, "measuring") as seen:
                found = lake.report(tables or None, price=price, progress=seen)
        if html is not None:
            measured = [each.table for each in found.tables or [found] if each.error is None]
            layouts = [load_layout(lake.table(name)) for name in measured[:MOST_PICTURES]]
            write_page(html, render_report(found, layouts, len(measured) - len(layouts)))
    if settings.as_json:
        print_json(kebab(found.as_dict()))
    elif html is None:
        print_text(str(found))
    return UNHEALTHY if found.failed else None


@contextmanager
def _each_table(lake: Lake, tables: tuple[str, ...], title: str) -> Iterator[Progress]:
    """Show how many tables are done, where there are several."""
    count = len(tables or lake.tables())
    if count < SEVERAL:
        yield lambda _name: None
        return
    with show_progress(f"{title} tables", count, "tables") as steps:
        yield partial(steps.advance, 1)
