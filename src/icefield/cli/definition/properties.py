"""icefield properties, rename, set-location: what a table or view is called, where it is, and its properties."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import rich_click as click

from icefield.cli.lakes import open_lake
from icefield.cli.options import table_argument
from icefield.cli.output import print_json, print_section, print_text, talk
from icefield.cli.pairs import parse_pairs
from icefield.cli.settings import LakeCommand, Settings
from icefield.errors import InvalidInput
from icefield.lake import Lake
from icefield.table.table import Table
from icefield.view import View

F = TypeVar("F", bound=Any)


def changes_of_properties(command: F) -> F:
    """The options --set, --unset and --dry-run."""
    for option in (
        click.option("--dry-run", is_flag=True, help="Show what would be done, and change nothing."),
        click.option("--unset", "removals", metavar="KEY", multiple=True, help="Remove a property. May be repeated."),
        click.option(
            "--set", "updates", metavar="KEY=VALUE", multiple=True, callback=parse_pairs,
            help="Set a property. May be repeated.",
        ),
    ):  # fmt: skip
        command = option(command)
    return command


@click.command(cls=LakeCommand)
@click.argument("name", metavar="TABLE")
@changes_of_properties
@click.pass_obj
def properties(
    settings: Settings, name: str, *, updates: dict[str, str], removals: tuple[str, ...], dry_run: bool
) -> None:
    """Show the properties of a table or view; --set and --unset change them, all in one commit."""
    with open_lake(settings) as lake:
        handle = _open(lake, name)
        after = changed_properties(handle.properties, updates, removals, name)
        if (updates or removals) and not dry_run:
            handle.set_properties(updates, removals=removals)
            after = handle.properties
    show_properties(settings, {"name": handle.name}, after)


def changed_properties(
    before: Mapping[str, str], updates: Mapping[str, str], removals: Sequence[str], name: str
) -> dict[str, str]:
    """Return the properties after a change. Raise InvalidInput for one that is not there, or both set and removed."""
    for key in removals:
        if key in updates:
            raise InvalidInput(f"property {key} is both set and removed")
        if key not in before:
            known = ", ".join(sorted(before)) or "none"
            raise InvalidInput(f"{name} has no property {key}", hint=f"Its properties: {known}")
    return {key: value for key, value in {**before, **updates}.items() if key not in removals}


def show_properties(settings: Settings, named: Mapping[str, str], found: Mapping[str, str]) -> None:
    """Print properties."""
    if settings.as_json:
        print_json({**named, "properties": dict(found)})
    elif not found:
        talk(f"{next(iter(named.values()))} has no properties.")
    else:
        print_section("", sorted(found.items()))


@click.command(cls=LakeCommand)
@click.argument("name", metavar="NAME")
@click.argument("new_name", metavar="NEW_NAME")
@click.pass_obj
def rename(settings: Settings, name: str, new_name: str) -> None:
    """Rename a table or a view. Its files stay where they are."""
    with open_lake(settings) as lake:
        is_view = lake.has_view(name)
        (lake.rename_view if is_view else lake.rename_table)(name, new_name)
    if settings.as_json:
        print_json({"kind": "view" if is_view else "table", "from": name, "to": new_name})
    else:
        print_text(f"renamed {name} to {new_name}")


@click.command(cls=LakeCommand)
@table_argument()
@click.argument("location")
@click.pass_obj
def set_location(settings: Settings, table: str, location: str) -> None:
    """Set where new files of a table go, as a location inside the lake. Existing files stay where they are."""
    with open_lake(settings) as lake:
        handle = lake.table(table)
        before = handle.location
        handle.set_location(location)
        if settings.as_json:
            print_json({"table": handle.name, "from": before, "to": handle.location})
        else:
            print_text(f"new files of {handle.name} go to {handle.location}")


def _open(lake: Lake, name: str) -> Table | View:
    return lake.view(name) if lake.has_view(name) else lake.table(name)
