"""icefield describe: the schema, layout, properties and totals of a table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import rich_click as click

from icefield.cli.options import table_argument
from icefield.cli.settings import LakeCommand, Settings
from icefield.deferred import deferred_imports
from icefield.types.transforms import Bucket, Identity, Transform, Truncate

with deferred_imports(__name__):
    from icefield.cli.commands.snapshots import snapshot_value
    from icefield.cli.lakes import open_lake
    from icefield.cli.output import counted, moment, print_json, print_section, print_text
    from icefield.cli.snapshot_facts import summary_number
    from icefield.model.metadata import TableMetadata
    from icefield.showing import format_bytes
    from icefield.types.datatypes import NestedField, PrimitiveType, walk
    from icefield.types.schema import Schema

TOTALS = ("total-records", "total-data-files", "total-files-size")


@click.command(cls=LakeCommand)
@table_argument()
@click.pass_obj
def describe(settings: Settings, table: str) -> None:
    """Show a table's columns with their ids, its layout, properties, current snapshot and totals."""
    with open_lake(settings) as lake:
        opened = lake.table(table)
        metadata, location = opened.metadata, opened.metadata_location
    if settings.as_json:
        print_json(_value(opened.name, location, metadata))
    else:
        _print(opened.name, location, metadata)


def transform_text(transform: Transform, column: str) -> str:
    """Format a transform of a column as `partition_by` accepts it: day(ts), bucket(16, id)."""
    match transform:
        case Identity():
            return column
        case Bucket(count):
            return f"bucket({count}, {column})"
        case Truncate(width):
            return f"truncate({width}, {column})"
        case _:
            return f"{transform}({column})"


def _value(name: str, location: str, metadata: TableMetadata) -> dict[str, object]:
    head = metadata.current_snapshot
    return {
        "table": name,
        "location": metadata.location,
        "metadata-file": location,
        "table-uuid": str(metadata.table_uuid),
        "format-version": metadata.format_version,
        "last-updated": moment(metadata.last_updated_ms),
        "columns": [
            {"id": f.field_id, "name": ".".join(path), "type": str(f.type), "required": f.required, "doc": f.doc}
            for path, f in walk(metadata.schema.struct)
        ],
        "partition-by": [
            {"id": f.field_id, "name": f.name, "source-ids": list(f.source_ids), "transform": text}
            for f, text in zip(metadata.spec.fields, partition_texts(metadata), strict=True)
        ],
        "order-by": [
            {
                "source-ids": list(f.source_ids),
                "transform": transform_text(f.transform, _names(metadata.schema, f.source_ids)),
                "direction": f.direction.value,
                "null-order": f.null_order.value,
            }
            for f in metadata.sort_order.fields
        ],
        "properties": dict(metadata.properties),
        "refs": {ref: str(target.snapshot_id) for ref, target in metadata.refs.items()},
        "snapshots": len(metadata.snapshots),
        "current-snapshot": snapshot_value(head, metadata) if head else None,
        "totals": _totals(metadata),
    }


def _print(name: str, location: str, metadata: TableMetadata) -> None:
    print_text(name)
    print_section("", _facts(location, metadata))
    print_section("columns", (_column_cells(path, field) for path, field in walk(metadata.schema.struct)))
    parts = zip(metadata.spec.fields, partition_texts(metadata), strict=True)
    print_section("partition fields", ((str(f.field_id), f.name, text) for f, text in parts))
    print_section("sort order", ((text,) for text in order_texts(metadata)))
    print_section("properties", sorted(metadata.properties.items()))
    print_section("refs", ((r, f"{t.kind} at {t.snapshot_id}") for r, t in sorted(metadata.refs.items())))


def _facts(location: str, metadata: TableMetadata) -> Iterator[tuple[str, str]]:
    yield "location", metadata.location
    yield "metadata file", location
    yield "format version", str(metadata.format_version)
    yield "uuid", str(metadata.table_uuid)
    yield "last updated", moment(metadata.last_updated_ms)
    yield "snapshots", f"{len(metadata.snapshots):,}"
    head = metadata.current_snapshot
    if head is None:
        yield "current snapshot", "none: the table has no snapshots"
        return
    yield "current snapshot", f"{head.snapshot_id} ({head.operation}, {moment(head.timestamp_ms)})"
    rows, files, size = _totals(metadata).values()
    if rows is not None and files is not None and size is not None:
        yield "totals", f"{counted(rows, 'row')} in {counted(files, 'data file')}, {format_bytes(size)}"


def _column_cells(path: tuple[str, ...], field: NestedField) -> tuple[str, ...]:
    """Show a column indented below its parents; a parent's type is given by its children."""
    kind = str(field.type) if isinstance(field.type, PrimitiveType) else str(field.type).partition("<")[0]
    required = "not null" if field.required else ""
    return str(field.field_id), "  " * (len(path) - 1) + path[-1], kind, required, field.doc or ""


def partition_texts(metadata: TableMetadata) -> list[str]:
    """Format the partition fields as `partition_by` accepts them."""
    names = metadata.schema_of_spec(metadata.spec)
    return [transform_text(f.transform, _names(names, f.source_ids)) for f in metadata.spec.fields]


def _names(schema: Schema, field_ids: Iterable[int]) -> str:
    """Name the sources of a transform; a dropped one by its id."""
    return ", ".join(schema.name_of(i) if i in schema.paths else f"column {i}" for i in field_ids)


def order_texts(metadata: TableMetadata) -> Iterator[str]:
    """Format the sort order as `order_by` accepts it."""
    for field in metadata.sort_order.fields:
        column = transform_text(field.transform, _names(metadata.schema, field.source_ids))
        yield f"{column} {field.direction} {field.null_order.replace('-', ' ')}"


def _totals(metadata: TableMetadata) -> Mapping[str, int | None]:
    head = metadata.current_snapshot
    return {name: summary_number(head, name) if head else 0 for name in TOTALS}
