"""icefield statistics: the statistics files of snapshots, and their computation."""

import json
from collections.abc import Mapping
from dataclasses import asdict

import rich_click as click

from icefield.cli.lakes import open_lake
from icefield.cli.options import table_argument
from icefield.cli.output import Column, kebab, print_grid, print_json, print_text, talk
from icefield.cli.progress import show_wait
from icefield.cli.settings import LakeCommand, Settings
from icefield.errors import InvalidInput
from icefield.model.statistics import BlobMetadata, StatisticsFile
from icefield.showing import format_bytes

STATISTICS_COLUMNS = (Column("snapshot", "right"), Column("size", "right"), Column("columns"), Column("file"))


@click.command(cls=LakeCommand)
@table_argument()
@click.option("--compute", is_flag=True, help="Count about how many distinct values columns have.")
@click.option("--column", "columns", metavar="COLUMN", multiple=True, help="With --compute: a column. May be repeated.")
@click.option("--partitions", is_flag=True, help="Count rows, files and deletes of each partition.")
@click.option("--remove", is_flag=True, help="Remove the statistics of --snapshot from the metadata; files are kept.")
@click.option("--snapshot", metavar="ID", type=int, help="The snapshot. [default: the newest]")
@click.pass_obj
def statistics(  # noqa: PLR0913 - one parameter per option
    settings: Settings,
    table: str,
    *,
    compute: bool,
    columns: tuple[str, ...],
    partitions: bool,
    remove: bool,
    snapshot: int | None,
) -> None:
    """List the statistics files of a table, compute them, or remove those of a snapshot."""
    if columns and not compute:
        raise InvalidInput("--column needs --compute")
    if remove and (compute or partitions or snapshot is None):
        raise InvalidInput("--remove needs --snapshot, and neither --compute nor --partitions")
    with open_lake(settings) as lake:
        handle = lake.table(table)
        if compute:
            with show_wait(f"reading {handle.name}"):
                handle.compute_statistics(columns or None, snapshot_id=snapshot)
        if partitions:
            handle.compute_partition_statistics(snapshot_id=snapshot)
        if remove and snapshot is not None:
            handle.remove_statistics(snapshot)
        found, names = handle.statistics(), handle.schema.paths
        by_partition = [json.loads(entry.document) for entry in handle.metadata.partition_statistics]
    if settings.as_json:
        print_json(
            {
                "table": handle.name,
                "statistics": [_value(each) for each in found],
                "partition-statistics": [
                    {**each, "snapshot-id": str(each.get("snapshot-id"))} for each in by_partition
                ],
            }
        )
        return
    if not found and not by_partition:
        talk(f"{handle.name} has no statistics.")
    if found:
        print_grid(STATISTICS_COLUMNS, [_row(each, names) for each in found])
    for each in by_partition:
        print_text(f"partitions of snapshot {each['snapshot-id']}: {each['statistics-path']}")


def _value(file: StatisticsFile) -> object:
    blobs = [{**asdict(blob), "snapshot_id": str(blob.snapshot_id)} for blob in file.blob_metadata]
    return kebab({**asdict(file), "snapshot_id": str(file.snapshot_id), "blob_metadata": blobs})


def _row(file: StatisticsFile, names: Mapping[int, tuple[str, ...]]) -> list[object]:
    columns = [_counted(blob, names) for blob in file.blob_metadata]
    return [str(file.snapshot_id), format_bytes(file.file_size_in_bytes), ", ".join(columns), file.statistics_path]


def _counted(blob: BlobMetadata, names: Mapping[int, tuple[str, ...]]) -> str:
    columns = ", ".join(".".join(names.get(field_id, (f"column {field_id}",))) for field_id in blob.fields)
    return f"{columns} ({blob.properties['ndv']} distinct)" if "ndv" in blob.properties else columns
