"""icefield namespaces, namespace, create-namespace, drop-namespace."""

import rich_click as click

from icefield.cli.definition.properties import changed_properties, changes_of_properties, show_properties
from icefield.cli.lakes import make_lake, open_lake
from icefield.cli.output import print_json, print_names, print_text
from icefield.cli.pairs import parse_pairs
from icefield.cli.questions import ask_first, asking_options
from icefield.cli.settings import LakeCommand, Settings
from icefield.errors import NamespaceNotEmpty

_name = click.argument("name", metavar="NAMESPACE")


@click.command(cls=LakeCommand)
@click.argument("parent", metavar="[NAMESPACE]", required=False)
@click.pass_obj
def namespaces(settings: Settings, parent: str | None) -> None:
    """List the namespaces of the lake, or those one level below another."""
    with open_lake(settings) as lake:
        print_names("namespaces", lake.namespaces(parent), lake.warehouse, as_json=settings.as_json)


@click.command(cls=LakeCommand)
@_name
@changes_of_properties
@click.pass_obj
def namespace(
    settings: Settings, name: str, *, updates: dict[str, str], removals: tuple[str, ...], dry_run: bool
) -> None:
    """Show the properties of a namespace; --set and --unset change them.

    Properties icefield.upkeep.* are defaults for its tables.
    """
    with open_lake(settings) as lake:
        after = changed_properties(lake.namespace_properties(name), updates, removals, name)
        if (updates or removals) and not dry_run:
            lake.update_namespace_properties(name, updates, removals=removals)
            after = lake.namespace_properties(name)
    show_properties(settings, {"namespace": name}, after)


@click.command(cls=LakeCommand)
@_name
@click.option(
    "--property", "properties", metavar="KEY=VALUE", multiple=True, callback=parse_pairs,
    help="A property of the namespace. May be repeated.",
)  # fmt: skip
@click.option("--if-not-exists", is_flag=True, help="Do nothing if it exists.")
@click.pass_obj
def create_namespace(settings: Settings, name: str, properties: dict[str, str], *, if_not_exists: bool) -> None:
    """Create a namespace. Tables create theirs by themselves."""
    with make_lake(settings) as lake:
        lake.create_namespace(name, properties, if_not_exists=if_not_exists)
    if settings.as_json:
        print_json({"namespace": name, "properties": properties})
    else:
        print_text(f"created {name}")


@click.command(cls=LakeCommand)
@_name
@asking_options()
@click.pass_obj
def drop_namespace(settings: Settings, name: str, *, dry_run: bool, yes: bool) -> None:
    """Drop an empty namespace, with its properties."""
    with open_lake(settings) as lake:
        held = lake.namespace_properties(name)
        inside = [*lake.tables(name), *lake.views(name), *lake.namespaces(name)]
        if inside:
            raise NamespaceNotEmpty(f"namespace {name} is not empty: it has {', '.join(inside[:5])}")
        what = f"namespace {name} with {len(held)} properties"
        if ask_first(what, "Drop it?", "nothing was dropped", dry_run=dry_run, yes=yes):
            lake.drop_namespace(name)
    if settings.as_json:
        print_json({"namespace": name, "properties": held, "dropped": not dry_run})
    else:
        print_text(f"{'would drop' if dry_run else 'dropped'} {name}")
