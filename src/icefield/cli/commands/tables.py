"""icefield tables, create, register, drop, upgrade: the tables of a lake, and their format versions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import rich_click as click

from icefield.arguments import whole_number
from icefield.cli.options import definition_options, format_version_option, location_option, table_argument
from icefield.cli.questions import asking_options
from icefield.cli.settings import LakeCommand, Settings
from icefield.deferred import deferred_imports
from icefield.errors import AlreadyExists, CorruptFile, InvalidInput, MissingFile
from icefield.properties.format_versions import FORMAT_VERSION, FORMAT_VERSIONS

with deferred_imports(__name__):
    from icefield.cli.lakes import lake_is_there, make_lake, open_lake
    from icefield.cli.output import counted, kebab, print_json, print_names, print_text, talk
    from icefield.cli.questions import ask_first, confirm
    from icefield.lake import Lake
    from icefield.model.apply import apply
    from icefield.model.names import parse_table_name
    from icefield.model.updates import UpgradeFormatVersion
    from icefield.storage.location import location_of_path
    from icefield.table.definition import define_table


@click.command(cls=LakeCommand)
@click.argument("namespace", required=False)
@click.pass_obj
def tables(settings: Settings, namespace: str | None) -> None:
    """List the tables in the lake, or in one namespace."""
    with open_lake(settings) as lake:
        print_names("tables", lake.tables(namespace), lake.warehouse, as_json=settings.as_json)


@click.command(cls=LakeCommand)
@table_argument()
@click.argument("schema", required=False)
@definition_options()
@format_version_option()
@click.option("--like", metavar="TABLE", help="Take columns, layout and properties from this table, instead of SCHEMA.")
@location_option()
@click.option("--replace", "replaces", is_flag=True, help="Replace the table if it exists; its history is kept.")
@click.option("--if-not-exists", is_flag=True, help="Do nothing if the table exists.")
@asking_options()
@click.pass_obj
def create(  # noqa: PLR0913 - one parameter per option
    settings: Settings,
    /,
    table: str,
    schema: str | None,
    *,
    like: str | None,
    replaces: bool,
    if_not_exists: bool,
    dry_run: bool,
    yes: bool,
    **layout: Any,
) -> None:
    """Create an empty table.

    SCHEMA is text such as 'id long not null, ts timestamptz, tags list<string>'. --replace asks before it replaces a
    table that exists.
    """
    _check_definition(schema, like, layout, is_choice=replaces or if_not_exists)
    exists = lake_is_there(settings) and _has_table(settings, table)
    if exists and replaces:
        ask_first(f"{table} is replaced", "Replace it?", "nothing was changed", dry_run=dry_run, yes=yes)
    if dry_run:
        _check_creation(settings, table, schema, like, layout)
        _report_creation(settings, table, exists=exists, may_exist=replaces or if_not_exists)
        return
    with make_lake(settings) as lake:
        if like is not None:
            properties, location = layout["properties"], layout["location"]
            made = lake.create_table_like(table, like, properties=properties, location=location)
        else:
            made = lake.create_table(table, schema, replace=replaces, if_not_exists=if_not_exists, **layout)
        if settings.as_json:
            print_json({"table": made.name, "location": made.location, "metadata-file": made.metadata_location})
        else:
            done = "replaced" if exists and replaces else "there is already a table" if exists else "created"
            print_text(f"{done} {made.name} at {made.location}")


@click.command(cls=LakeCommand)
@table_argument()
@click.argument("metadata_file")
@click.pass_obj
def register(settings: Settings, table: str, metadata_file: str) -> None:
    """Add an existing table to the catalog, by its metadata file. No data is copied or moved.

    METADATA_FILE is the newest metadata file of the table: a path or a location.
    """
    location = metadata_file if "://" in metadata_file else location_of_path(str(Path(metadata_file).resolve()))
    with make_lake(settings) as lake:
        made = lake.register_table(table, location)
        if settings.as_json:
            print_json({"table": made.name, "location": made.location, "metadata-file": made.metadata_location})
        else:
            print_text(f"registered {made.name} at {made.location}")


@click.command(cls=LakeCommand)
@table_argument()
@asking_options()
@click.option("--purge", is_flag=True, help="Let `icefield purge` delete its files later.")
@click.pass_obj
def drop(settings: Settings, table: str, *, yes: bool, dry_run: bool, purge: bool) -> None:
    """Remove a table from the catalog. Its files are kept, unless --purge is given; `icefield undrop` restores it."""
    with open_lake(settings) as lake:
        plan = replace(_plan_drop(lake, table), purge=purge)
        if not dry_run and not yes:
            talk(str(plan))
            confirm("Drop it?", "nothing was dropped")
        if not dry_run:
            lake.drop_table(table, purge=purge)
    if settings.as_json:
        print_json(kebab({**asdict(plan), "dropped": not dry_run}))
    else:
        print_text(f"{'would drop' if dry_run else 'dropped'} {plan}")


@click.command(cls=LakeCommand)
@table_argument()
@click.option("--to", "version", type=int, default=max(FORMAT_VERSIONS), show_default=True, help="The format version.")
@asking_options()
@click.pass_obj
def upgrade(settings: Settings, table: str, version: int, *, yes: bool, dry_run: bool) -> None:
    """Upgrade a table to a later format version. No data file is rewritten, and there is no way back."""
    with open_lake(settings) as lake:
        found = lake.table(table)
        before = found.metadata.format_version
        apply(found.metadata, [UpgradeFormatVersion(version)], now_ms=0)  # raises if it cannot be done
        plan = f"{found.name} from format version {before} to {version}"
        if not dry_run and not yes and before != version:
            talk(
                f"{plan}; engines without support for version {version} can no longer read it, and it cannot be undone"
            )
            confirm("Upgrade it?", "nothing was changed")
        if not dry_run:
            found.upgrade_format_version(version)
    if settings.as_json:
        print_json({"table": found.name, "from": before, "to": version, "upgraded": not dry_run and before != version})
    elif before == version:
        print_text(f"{found.name} has format version {version} already")
    else:
        print_text(f"{'would upgrade' if dry_run else 'upgraded'} {plan}")


def _check_definition(schema: str | None, like: str | None, layout: Mapping[str, Any], *, is_choice: bool) -> None:
    if (schema is None) == (like is None):
        raise InvalidInput("a new table needs SCHEMA or --like, and not both")
    if like is not None and (is_choice or any(layout[key] for key in ("partition_by", "order_by", "format_version"))):
        raise InvalidInput("--like takes only --property and --location")


def _has_table(settings: Settings, table: str) -> bool:
    with open_lake(settings) as lake:
        return lake.has_table(table)


def _check_creation(
    settings: Settings, table: str, schema: str | None, like: str | None, layout: Mapping[str, Any]
) -> None:
    """Raise InvalidInput for a definition that cannot be created."""
    parse_table_name(table)
    if like is not None:
        with open_lake(settings) as lake:
            lake.table(like)
    else:
        version = layout["format_version"] or FORMAT_VERSION
        define_table(schema, layout["partition_by"], layout["order_by"], layout["properties"], version)


def _report_creation(settings: Settings, table: str, *, exists: bool, may_exist: bool) -> None:
    """Say what a dry run would create."""
    if exists and not may_exist:
        raise AlreadyExists(f"table {table} exists already", hint="Give --replace or --if-not-exists")
    if settings.as_json:
        print_json({"table": table, "dry-run": True, "exists": exists})
    else:
        print_text(f"{'there is already a table' if exists else 'would create'} {table}")


@dataclass(frozen=True)
class _Drop:
    """What a drop removes from the catalog; counts are None if the metadata cannot be read."""

    table: str
    metadata_file: str
    location: str | None = None
    snapshots: int | None = None
    rows: int | None = None
    purge: bool = False

    def __str__(self) -> str:
        if self.location is None or self.snapshots is None:
            return f"{self.table} (its metadata at {self.metadata_file} cannot be read); its files are kept"
        rows = "" if self.rows is None else f", {counted(self.rows, 'row')}"
        kept = "its files are deleted when it cannot be restored any more" if self.purge else "its files are kept in"
        place = f" ({self.location})" if self.purge else f" {self.location}"
        return f"{self.table} ({counted(self.snapshots, 'snapshot')}{rows}); {kept}{place}"


def _plan_drop(lake: Lake, name: str) -> _Drop:
    known = parse_table_name(name)
    try:
        metadata = lake.table(name).metadata
    except (CorruptFile, MissingFile):
        # A table that cannot be read can still be dropped.
        return _Drop(str(known), lake.catalog.pointer(known))
    head = metadata.current_snapshot
    rows = head.summary.get("total-records") if head else "0"
    return _Drop(
        str(known),
        lake.catalog.pointer(known),
        metadata.location,
        len(metadata.snapshots),
        whole_number(rows),
    )
