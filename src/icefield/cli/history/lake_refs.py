"""icefield lake-branch, lake-tag: branches and tags of many tables, created, published and dropped in one swap."""

from collections.abc import Sequence
from typing import Any, Literal

import rich_click as click

from icefield.cli.history.branches import on_collision_option, reporting
from icefield.cli.lakes import open_lake
from icefield.cli.output import counted, print_json, print_text, safe, talk
from icefield.cli.questions import ask_first, asking_options
from icefield.cli.settings import LakeCommand, Settings, SnapshotCommand
from icefield.errors import InvalidInput
from icefield.lake import Lake
from icefield.model.snapshot import MAIN

_name = click.argument("name", metavar="NAME")
_tables = click.argument("tables", metavar="[TABLE]...", nargs=-1)
_list = click.option("--list", "lists", is_flag=True, help="List the tables that have it.")
_drop = click.option("--drop", is_flag=True, help="Drop it, of all tables that have it.")


@click.command(cls=SnapshotCommand)
@_name
@_tables
@click.option("--publish", is_flag=True, help=f"Publish it to {MAIN}, of all tables that have it.")
@on_collision_option
@_list
@_drop
@asking_options()
@click.pass_obj
def lake_branch(
    settings: Settings,
    /,
    name: str,
    tables: tuple[str, ...],
    *,
    publish: bool,
    on_collision: Literal["ours", "theirs"] | None,
    **options: Any,
) -> None:
    """Create a branch of all tables, or of some, at one moment; publish or drop it."""
    if publish and (options["lists"] or options["drop"]):
        raise InvalidInput("--publish, --list and --drop exclude each other")
    if on_collision is not None and not publish:
        raise InvalidInput("--on-collision is for --publish")
    if not publish:
        _run(settings, name, tables, "branch", **options)
        return
    _refuse_tables(tables)
    with open_lake(settings) as lake, reporting(settings):
        changed = lake.at(name).publish(dry_run=options["dry_run"], on_collision=on_collision)
    _report(settings, name, changed, "would publish" if options["dry_run"] else "published")


@click.command(cls=LakeCommand)
@_name
@_tables
@_list
@_drop
@asking_options()
@click.pass_obj
def lake_tag(settings: Settings, /, name: str, tables: tuple[str, ...], **options: Any) -> None:
    """Tag one consistent state of all tables, or of some; or drop the tag."""
    _run(settings, name, tables, "tag", **options)


def _run(  # noqa: PLR0913 - one parameter per option
    settings: Settings,
    name: str,
    tables: tuple[str, ...],
    kind: Literal["branch", "tag"],
    *,
    lists: bool,
    drop: bool,
    dry_run: bool,
    yes: bool,
) -> None:
    if lists and drop:
        raise InvalidInput("--list and --drop exclude each other")
    with open_lake(settings) as lake:
        if lists or drop:
            _refuse_tables(tables)
            found = lake.at(name)
            listed = found.drop(kind=kind, dry_run=True) if drop else found.tables()
            what = f"{kind} {name} of {counted(len(listed), 'table')}"
            if drop and ask_first(what, "Drop it?", "nothing was dropped", dry_run=dry_run, yes=yes):
                found.drop(kind=kind)
            done = "has" if lists else "would drop" if dry_run else "dropped"
            _report(settings, name, listed, done)
        else:
            chosen = tables or None
            made = lake.preview_refs(kind, name, tables=chosen) if dry_run else _create(lake, name, chosen, kind)
            _report(settings, name, made, "would create" if dry_run else "created")


def _create(lake: Lake, name: str, tables: Sequence[str] | None, kind: str) -> list[str]:
    return (lake.tag if kind == "tag" else lake.branch)(name, tables=tables).tables()


def _refuse_tables(tables: tuple[str, ...]) -> None:
    if tables:
        raise InvalidInput("tables can be named only when it is created", hint="Leave them out")


def _report(settings: Settings, name: str, tables: list[str], done: str) -> None:
    if settings.as_json:
        print_json({"name": name, "action": done, "tables": tables})
        return
    for table in tables:
        print_text(f"{done} {safe(name)} of {table}" if done != "has" else table)
    if not tables:
        talk(f"There are no tables for {name}.")
