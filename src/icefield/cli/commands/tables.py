"""icefield tables, create, register, drop, upgrade: the tables of a lake, and their format versions."""

from dataclasses import asdict, dataclass, replace
from pathlib import Path

import rich_click as click

from icefield.arguments import whole_number
from icefield.cli.lakes import make_lake, open_lake
from icefield.cli.options import definition_options, table_argument
from icefield.cli.output import counted, kebab, print_json, print_text, talk
from icefield.cli.settings import LakeCommand, Settings
from icefield.errors import CorruptFile, InvalidInput, MissingFile
from icefield.lake import Lake
from icefield.model.apply import apply
from icefield.model.metadata import FORMAT_VERSION, FORMAT_VERSIONS
from icefield.model.names import parse_table_name
from icefield.model.updates import UpgradeFormatVersion
from icefield.storage.location import location_of_path


@click.command(cls=LakeCommand)
@click.argument("namespace", required=False)
@click.pass_obj
def tables(settings: Settings, namespace: str | None) -> None:
    """List the tables in the lake, or in one namespace."""
    with open_lake(settings) as lake:
        names = lake.tables(namespace)
        if settings.as_json:
            print_json({"lake": lake.warehouse, "tables": names})
            return
        for name in names:
            print_text(name)
        if not names:
            talk("There are no tables.")


@click.command(cls=LakeCommand)
@table_argument()
@click.argument("schema")
@definition_options()
@click.option(
    "--format-version",
    type=click.IntRange(min(FORMAT_VERSIONS), max(FORMAT_VERSIONS)),
    default=FORMAT_VERSION,
    show_default=True,
    help="The version of the table format.",
)
@click.pass_obj
def create(  # noqa: PLR0913 - one parameter per option
    settings: Settings,
    table: str,
    schema: str,
    *,
    format_version: int,
    partition_by: tuple[str, ...],
    order_by: tuple[str, ...],
    properties: dict[str, str],
) -> None:
    """Create an empty table.

    SCHEMA is text such as 'id long not null, ts timestamptz, tags list<string>'.
    """
    with make_lake(settings) as lake:
        made = lake.create_table(
            table,
            schema,
            partition_by=partition_by,
            order_by=order_by,
            properties=properties,
            format_version=format_version,
        )
        if settings.as_json:
            print_json({"table": made.name, "location": made.location, "metadata-file": made.metadata_location})
        else:
            print_text(f"created {made.name} at {made.location}")


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
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--dry-run", is_flag=True, help="Show what would be done, and change nothing.")
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
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--dry-run", is_flag=True, help="Show what would be done, and change nothing.")
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


def confirm(question: str, otherwise: str) -> None:
    """Ask a question; raise InvalidInput unless the answer is yes."""
    try:
        confirmed = click.confirm(question, err=True)
    except click.Abort:  # interrupted, or no terminal
        confirmed = False
    if not confirmed:
        raise InvalidInput(f"{otherwise}: it was not confirmed", hint="Answer y, or give --yes")


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
