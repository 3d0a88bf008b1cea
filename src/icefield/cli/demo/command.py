"""icefield demo: a scripted tour with shop orders, and chapters about one capability each."""

import shlex
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import rich_click as click

from icefield.cli.demo.branches_chapter import tell_branches
from icefield.cli.demo.directory import make_fresh
from icefield.cli.demo.merge_chapter import tell_merge
from icefield.cli.demo.row_engines import ArrowRows, DemoRows, SparkRows
from icefield.cli.demo.sql_chapter import tell_sql
from icefield.cli.demo.stage import Stage
from icefield.cli.demo.story import program_text, tell
from icefield.cli.demo.upkeep_chapter import tell_upkeep
from icefield.cli.output import Narrator, kebab, print_json
from icefield.cli.settings import LakeCommand, Settings
from icefield.config.connect import connect

LEAST_ROWS, MOST_ROWS = 1_000, 20_000_000
ROWS, LOCAL_ROWS = 300_000, 60_000
CHAPTERS: dict[str, tuple[Callable[[Stage], dict[str, object]], int]] = {
    "merge": (tell_merge, 2_000),
    "upkeep": (tell_upkeep, 20_000),
    "branches": (tell_branches, 20_000),
    "sql": (partial(tell_sql, local=False), 2_000),
}


@click.command(cls=LakeCommand)
@click.argument("chapter", metavar="[CHAPTER]", type=click.Choice(list(CHAPTERS)), required=False)
@click.option(
    "--dir",
    "directory",
    type=click.Path(path_type=Path),
    default=Path("demo-lake"),
    show_default=True,
    help="Where to create the lake; that of an earlier demo is replaced.",
)
@click.option(
    "--rows",
    type=click.IntRange(LEAST_ROWS, MOST_ROWS),
    help=f"How many rows the tables have. [default: {ROWS:,}; with --local {LOCAL_ROWS:,}; fewer in a chapter]",
)
@click.option("--local", is_flag=True, help="Without Spark, and so without a JVM.")
@click.pass_obj
def demo(settings: Settings, chapter: str | None, directory: Path, rows: int | None, *, local: bool) -> None:
    """Show what a lake can do, with a short story that runs.

    Shop orders are written by several Spark and Arrow writers at once, a query is pruned, a bad write is undone by
    time travel, and DuckDB reads the same rows. The directory is kept, so that you can go on with it.

    A chapter tells about one capability, while other processes write, read and compact the same tables: merge, upkeep,
    branches, or sql. Only sql starts a JVM, unless --local is given. Whatever is said is computed from the tables, and
    the demo fails if it is not true.
    """
    narrator = Narrator(to_stderr=settings.as_json)
    if make_fresh(directory):
        narrator.say(f"({directory} held an earlier demo, which was cleared.)")
    program = program_text(Path(sys.argv[0]))
    if chapter is None:
        count = rows or (LOCAL_ROWS if local else ROWS)
        engine: DemoRows = ArrowRows() if local else SparkRows()
        result = tell(narrator, directory, count, program, engine)
    else:
        play, usual = CHAPTERS[chapter]
        if chapter == "sql":
            play = partial(tell_sql, local=local)
        with connect(directory) as lake:
            result = {"lake": str(directory), "chapter": chapter}
            result |= play(Stage(narrator, lake, directory, rows or usual))
        narrator.say(
            f"\nThe lake is in {directory}; look around with {program} --lake {shlex.quote(str(directory))} tables"
        )
    if settings.as_json:
        print_json(kebab(result))
