"""The metadata tables from metadata.json alone: snapshots, history, refs, metadata log, schemas, properties."""

from collections.abc import Iterator

import numpy as np

from icefield.inspect.source import MICROS_PER_MILLI, Inspected, MetadataTable, table_of_rows
from icefield.model.snapshot import Snapshot
from icefield.types.datatypes import walk
from icefield.types.text import parse_schema

OPERATION = "operation"
Row = dict[str, object]

SNAPSHOTS = parse_schema(
    "committed_at timestamptz not null, snapshot_id long not null, parent_id long, operation string, "
    "manifest_list string, summary map<string, string>"
)
HISTORY = parse_schema(
    "made_current_at timestamptz not null, snapshot_id long not null, parent_id long, "
    "is_current_ancestor boolean not null"
)
REFS = parse_schema(
    "name string not null, type string not null, snapshot_id long not null, max_reference_age_in_ms long, "
    "min_snapshots_to_keep int, max_snapshot_age_in_ms long"
)
METADATA_LOG_ENTRIES = parse_schema(
    "timestamp timestamptz not null, file string not null, latest_snapshot_id long, latest_schema_id int, "
    "latest_sequence_number long"
)
SCHEMAS = parse_schema(
    "schema_id int not null, is_current boolean not null, field_id int not null, name string not null, "
    "type string not null, required boolean not null, is_identifier boolean not null, doc string"
)
PROPERTIES = parse_schema("key string not null, value string not null")


def snapshots_table(source: Inspected) -> MetadataTable:
    """Every snapshot, oldest first."""
    return table_of_rows(SNAPSHOTS, lambda: map(_snapshot_row, source.metadata.snapshots))


def history_table(source: Inspected) -> MetadataTable:
    """The snapshots that `main` pointed at, and from when."""
    return table_of_rows(HISTORY, lambda: _history(source))


def refs_table(source: Inspected) -> MetadataTable:
    """Branches and tags."""
    return table_of_rows(REFS, lambda: _refs(source))


def metadata_log_entries_table(source: Inspected) -> MetadataTable:
    """The metadata files in the log, the current one last, each with its latest snapshot."""
    return table_of_rows(METADATA_LOG_ENTRIES, lambda: _metadata_log(source))


def schemas_table(source: Inspected) -> MetadataTable:
    """Every column, at every depth, of every schema of the table."""
    return table_of_rows(SCHEMAS, lambda: _schemas(source))


def properties_table(source: Inspected) -> MetadataTable:
    """The properties, by key."""
    properties = sorted(source.metadata.properties.items())
    return table_of_rows(PROPERTIES, lambda: ({"key": key, "value": value} for key, value in properties))


def _snapshot_row(snapshot: Snapshot) -> Row:
    return {
        "committed_at": snapshot.timestamp_ms * MICROS_PER_MILLI,
        "snapshot_id": snapshot.snapshot_id,
        "parent_id": snapshot.parent_snapshot_id,
        "operation": snapshot.operation,
        "manifest_list": snapshot.manifest_list or None,
        "summary": [pair for pair in snapshot.summary.items() if pair[0] != OPERATION],
    }


def _history(source: Inspected) -> Iterator[Row]:
    metadata = source.metadata
    parents = {s.snapshot_id: s.parent_snapshot_id for s in metadata.snapshots}
    ancestors = {s.snapshot_id for s in metadata.ancestors(metadata.current_snapshot)}
    for entry in metadata.snapshot_log:
        yield {
            "made_current_at": entry.timestamp_ms * MICROS_PER_MILLI,
            "snapshot_id": entry.snapshot_id,
            "parent_id": parents.get(entry.snapshot_id),
            "is_current_ancestor": entry.snapshot_id in ancestors,
        }


def _refs(source: Inspected) -> Iterator[Row]:
    for name, ref in source.metadata.refs.items():
        yield {
            "name": name,
            "type": ref.kind.name,
            "snapshot_id": ref.snapshot_id,
            "max_reference_age_in_ms": ref.max_ref_age_ms,
            "min_snapshots_to_keep": ref.min_snapshots_to_keep,
            "max_snapshot_age_in_ms": ref.max_snapshot_age_ms,
        }


def _metadata_log(source: Inspected) -> Iterator[Row]:
    metadata = source.metadata
    moments = np.array([entry.timestamp_ms for entry in metadata.snapshot_log], np.int64)
    files = [(e.timestamp_ms, e.metadata_file) for e in metadata.metadata_log]
    for timestamp_ms, file in (*files, (metadata.last_updated_ms, source.metadata_location)):
        # The log is in order of change: of several snapshots in one millisecond, the last one counts.
        since = np.flatnonzero(moments <= timestamp_ms)
        snapshot_id = metadata.snapshot_log[since[-1]].snapshot_id if len(since) else None
        latest = None if snapshot_id is None else metadata.snapshots.find(snapshot_id)
        yield {
            "timestamp": timestamp_ms * MICROS_PER_MILLI,
            "file": file,
            "latest_snapshot_id": snapshot_id,
            "latest_schema_id": latest.schema_id if latest else None,
            "latest_sequence_number": latest.sequence_number if latest else None,
        }


def _schemas(source: Inspected) -> Iterator[Row]:
    for schema in source.metadata.schemas:
        for path, field in walk(schema.struct):
            yield {
                "schema_id": schema.schema_id,
                "is_current": schema.schema_id == source.metadata.current_schema_id,
                "field_id": field.field_id,
                "name": ".".join(path),
                "type": str(field.type),
                "required": field.required,
                "is_identifier": field.field_id in schema.identifier_field_ids,
                "doc": field.doc,
            }
