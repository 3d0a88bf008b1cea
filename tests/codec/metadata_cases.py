"""Strategies for whole table metadata."""

from hypothesis import strategies as st
from tests.schema_cases import schemas

from icefield.model.metadata import TableMetadata
from icefield.model.partition import PartitionField, PartitionSpec
from icefield.model.snapshot import (
    MAIN,
    MetadataLogEntry,
    RefKind,
    Snapshot,
    SnapshotLogEntry,
    SnapshotRef,
    Snapshots,
)
from icefield.model.sort_order import UNSORTED, Direction, NullOrder, SortField, SortOrder
from icefield.properties.format_versions import FORMAT_VERSIONS
from icefield.types.transforms import Bucket, Day, Hour, Identity, Month, Transform, Truncate, Unknown, Void, Year

LONGS = st.integers(-(1 << 63), (1 << 63) - 1)
NATURALS = st.integers(0, (1 << 63) - 1)
INTS = st.integers(0, (1 << 31) - 1)
STRINGS = st.text(max_size=8)
TRANSFORMS: st.SearchStrategy[Transform] = st.one_of(
    st.sampled_from([Identity(), Void(), Year(), Month(), Day(), Hour(), Unknown("zorder[3]")]),
    st.builds(Bucket, st.integers(1, (1 << 31) - 1)),
    st.builds(Truncate, st.integers(1, (1 << 31) - 1)),
)
SPECS = st.builds(
    PartitionSpec, st.lists(st.builds(PartitionField, INTS, INTS, STRINGS, TRANSFORMS), max_size=3).map(tuple), INTS
)
ORDERS = st.builds(
    SortOrder,
    st.lists(
        st.builds(SortField, INTS, TRANSFORMS, st.sampled_from(Direction), st.sampled_from(NullOrder)), max_size=3
    ).map(tuple),
    INTS,
)
SNAPSHOTS = st.builds(
    Snapshot,
    snapshot_id=NATURALS,
    sequence_number=LONGS,
    timestamp_ms=LONGS,
    manifest_list=st.text(min_size=1, max_size=8),
    parent_snapshot_id=st.none() | LONGS,
    schema_id=st.none() | INTS,
    summary=st.dictionaries(STRINGS, STRINGS, max_size=3),
    first_row_id=st.none() | NATURALS,
    added_rows=st.none() | NATURALS,
    key_id=st.none() | STRINGS,
)
V1_SNAPSHOTS = st.builds(
    Snapshot,
    snapshot_id=NATURALS,
    sequence_number=st.just(0),
    timestamp_ms=LONGS,
    manifest_list=st.just(""),
    parent_snapshot_id=st.none() | LONGS,
    manifests=st.lists(STRINGS, max_size=2).map(tuple),
)
REFS = st.builds(SnapshotRef, LONGS, st.sampled_from(RefKind), st.none() | INTS, st.none() | LONGS, st.none() | LONGS)


@st.composite
def tables(draw: st.DrawFn) -> TableMetadata:
    """Draw metadata in which what must be found is there, and all else is anything."""
    version = draw(st.sampled_from(FORMAT_VERSIONS))
    columns = draw(st.lists(schemas(names=st.text(min_size=1, max_size=6)), min_size=1, max_size=3))
    specs = draw(st.lists(SPECS, min_size=1, max_size=2))
    orders = [UNSORTED, *draw(st.lists(ORDERS, max_size=2))]
    snapshots = draw(st.lists(SNAPSHOTS | V1_SNAPSHOTS, max_size=4))
    refs = draw(st.dictionaries(STRINGS.filter(lambda name: name != MAIN), REFS, max_size=2))
    has_current: bool = draw(st.booleans())
    current = draw(st.sampled_from(snapshots)).snapshot_id if snapshots and has_current else None
    if current is not None:
        refs[MAIN] = SnapshotRef(current, RefKind.BRANCH, draw(st.none() | INTS))
    return TableMetadata(
        table_uuid=draw(st.uuids()),
        location=draw(STRINGS).rstrip("/"),
        last_updated_ms=draw(LONGS),
        last_column_id=draw(INTS),
        schemas=tuple(columns),
        current_schema_id=draw(st.sampled_from(columns)).schema_id,
        format_version=version,
        last_sequence_number=draw(LONGS) if version > 1 else 0,
        next_row_id=draw(NATURALS) if version > 2 else 0,
        specs=tuple(specs),
        default_spec_id=draw(st.sampled_from(specs)).spec_id,
        last_partition_id=draw(INTS),
        sort_orders=tuple(orders),
        default_sort_order_id=draw(st.sampled_from(orders)).order_id,
        properties=draw(st.dictionaries(STRINGS, STRINGS, max_size=3)),
        current_snapshot_id=current,
        snapshots=Snapshots(tuple(snapshots)),
        snapshot_log=tuple(draw(st.lists(st.builds(SnapshotLogEntry, LONGS, LONGS), max_size=3))),
        metadata_log=tuple(draw(st.lists(st.builds(MetadataLogEntry, LONGS, STRINGS), max_size=3))),
        refs=refs,
        unknown=draw(st.dictionaries(st.text(max_size=5).map("x-".__add__), st.just(b'{"a" : [1, 2.50]}'), max_size=2)),
    )
