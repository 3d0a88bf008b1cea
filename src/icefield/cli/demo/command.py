"""icefield demo: a scripted tour with shop orders."""

import sys
from pathlib import Path

import rich_click as click

from icefield.cli.demo.directory import make_fresh
from icefield.cli.demo.story import tell
from icefield.cli.output import Narrator, kebab, print_json
from icefield.cli.settings import LakeCommand, Settings

LEAST_ROWS, MOST_ROWS = 1_000, 20_000_000


@click.command(cls=LakeCommand)
@click.option(
    "--dir",
    "directory",
    type=click.Path(path_type=Path),
    default=Path("demo-lake"),
    show_default=True,
    help="Where to create the lake; that of an earlier demo is replaced.",
)
@click.option("--rows", type=click.IntRange(LEAST_ROWS, MOST_ROWS), default=300_000, show_default=True)
@click.pass_obj
def demo(settings: Settings, directory: Path, rows: int) -> None:
    """Show what a lake can do, with a short story that runs.

    Shop orders are written by several Spark and Arrow writers at once, a query is pruned, a bad write is undone by
    time travel, and DuckDB reads the same rows. The directory is kept, so that you can go on with it.
    """
    narrator = Narrator(to_stderr=settings.as_json)
    if make_fresh(directory):
        narrator.say(f"({directory} held an earlier demo, which was cleared.)")
    result = tell(narrator, directory, rows, Path(sys.argv[0]))
    if settings.as_json:
        print_json(kebab(result))
