"""icefield describe: everything about a table but its rows."""

import rich_click as click

from icefield.cli.options import table_argument
from icefield.cli.output import Column, moment, print_grid, print_json, print_text
from icefield.cli.settings import LakeCommand, Settings, open_lake
from icefield.cli.snapshots import refs_of, snapshot_value, summary_number
from icefield.model.metadata import TableMetadata
from icefield.model.partition import PartitionSpec
from icefield.model.sort_order import SortOrder
from icefield.scan.explain import human_bytes
from icefield.table import Table
from icefield.types.datatypes import walk
from icefield.types.schema import Schema

Value = dict[str, object]


@click.command(cls=LakeCommand)
@table_argument()
@click.pass_obj
def describe(settings: Settings, table: str) -> None:
    """Show a table's columns with their ids, its layout, properties, current snapshot and totals."""
    with open_lake(settings) as lake:
        opened = lake.table(table)
        value = _describe(opened, opened.metadata)
    if settings.as_json:
        print_json(value)
    else:
        _print(value)


def _describe(table: Table, metadata: TableMetadata) -> Value:
    head = metadata.current_snapshot
    names = ("total-records", "total-data-files", "total-files-size")
    return {
        "table": table.name,
        "location": metadata.location,
        "metadata-file": table.metadata_location,
        "table-uuid": str(metadata.table_uuid),
        "format-version": metadata.format_version,
        "last-updated": moment(metadata.last_updated_ms),
        "columns": _columns(metadata.schema),
        "partition-spec": _spec(metadata.spec, metadata),
        "sort-order": _order(metadata.sort_order, metadata.schema),
        "properties": dict(metadata.properties),
        "refs": {name: str(ref.snapshot_id) for name, ref in metadata.refs.items()},
        "snapshots": len(metadata.snapshots),
        "current-snapshot": snapshot_value(head, metadata) if head else None,
        "totals": {name: summary_number(head, name) if head else 0 for name in names},
    }


def _columns(schema: Schema) -> list[Value]:
    return [
        {"id": f.field_id, "name": ".".join(path), "type": str(f.type), "required": f.required, "doc": f.doc}
        for path, f in walk(schema.struct)
    ]


def _spec(spec: PartitionSpec, metadata: TableMetadata) -> Value:
    return {"spec-id": spec.spec_id, "fields": [_part(f, metadata) for f in spec.fields]}
