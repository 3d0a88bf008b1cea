"""icefield views, view, create-view, drop-view: named queries."""

from __future__ import annotations

import rich_click as click

from icefield.cli.options import property_option
from icefield.cli.questions import asking_options, confirm
from icefield.cli.settings import LakeCommand, Settings
from icefield.deferred import deferred_imports

with deferred_imports(__name__):
    from icefield.cli.lakes import make_lake, open_lake
    from icefield.cli.output import moment, print_json, print_names, print_section, print_text, talk
    from icefield.view import View

NAME = click.argument("name", metavar="VIEW")


@click.command(cls=LakeCommand)
@click.argument("namespace", required=False)
@click.pass_obj
def views(settings: Settings, namespace: str | None) -> None:
    """List the views in the lake, or in one namespace."""
    with open_lake(settings) as lake:
        print_names("views", lake.views(namespace), lake.warehouse, as_json=settings.as_json)


@click.command(cls=LakeCommand)
@NAME
@click.pass_obj
def view(settings: Settings, name: str) -> None:
    """Show a view's query, columns, properties and history."""
    with open_lake(settings) as lake:
        opened = lake.view(name)
        if settings.as_json:
            print_json(_value(opened))
        else:
            _print(opened)


@click.command(cls=LakeCommand)
@NAME
@click.argument("sql")
@click.option("--replace", is_flag=True, help="Replace the view if it exists.")
@click.option(
    "--default-namespace", metavar="NAMESPACE", help="The namespace of names without one. [default: the view's]"
)
@click.option("--schema", metavar="COLUMNS", help="The columns, such as 'id long'; without it, Spark works them out.")
@property_option()
@click.pass_obj
def create_view(  # noqa: PLR0913 - one parameter per option
    settings: Settings,
    name: str,
    sql: str,
    *,
    replace: bool,
    default_namespace: str | None,
    schema: str | None,
    properties: dict[str, str],
) -> None:
    """Create a view: a named query.

    SQL is a SELECT in Spark's dialect over tables and views of the lake.
    """
    with make_lake(settings) as lake:
        made = lake.create_view(
            name, sql, schema=schema, properties=properties, replace=replace, default_namespace=default_namespace
        )
        if settings.as_json:
            print_json({"view": made.name, "metadata-file": made.metadata_location})
        else:
            print_text(f"created {made.name}: {', '.join(f.name for f in made.schema.fields)}")


@click.command(cls=LakeCommand)
@NAME
@asking_options()
@click.pass_obj
def drop_view(settings: Settings, name: str, *, yes: bool, dry_run: bool) -> None:
    """Remove a view from the catalog. Its files are kept."""
    with open_lake(settings) as lake:
        location = lake.view(name).metadata_location
        if not dry_run and not yes:
            talk(f"{name} ({location})")
            confirm("Drop it?", "nothing was dropped")
        if not dry_run:
            lake.drop_view(name)
    if settings.as_json:
        print_json({"view": name, "metadata-file": location, "dropped": not dry_run})
    else:
        print_text(f"{'would drop' if dry_run else 'dropped'} {name}; its files are kept at {location}")


def _value(view: View) -> dict[str, object]:
    version = view.metadata.current_version
    return {
        "view": view.name,
        "location": view.metadata.location,
        "metadata-file": view.metadata_location,
        "sql": {dialect: version.find_sql(dialect.lower()) for dialect in version.dialects},
        "default-catalog": version.default_catalog,
        "default-namespace": ".".join(version.default_namespace),
        "columns": [{"name": f.name, "type": str(f.type), "doc": f.doc} for f in view.schema.fields],
        "properties": view.properties,
        "history": [{"at": moment(e.timestamp_ms), "version-id": e.version_id} for e in view.history()],
    }


def _print(view: View) -> None:
    version = view.metadata.current_version
    print_text(view.name)
    for dialect in version.dialects:
        print_section(f"query ({dialect})", [(line,) for line in str(version.find_sql(dialect.lower())).splitlines()])
    print_section("columns", [(f.name, str(f.type), f.doc or "") for f in view.schema.fields])
    print_section("properties", sorted(view.properties.items()))
    print_section("history", [(moment(e.timestamp_ms), f"version {e.version_id}") for e in view.history()])
