"""What `as_of` means."""

import datetime

import pyarrow as pa
import pytest

from icefield.errors import InvalidInput, NoSuchSnapshot
from icefield.lake import Lake
from icefield.model.apply import apply
from icefield.model.metadata import TableMetadata
from icefield.model.snapshot import RefKind, SnapshotRef
from icefield.model.updates import AddSchema, SetCurrentSchema, SetSnapshotRef, Update
from icefield.plan.versions import ResolvedVersion, resolve_version
from icefield.types.datatypes import NestedField, StringType
from icefield.types.schema import Schema


@pytest.fixture
def metadata(memory_lake: Lake) -> TableMetadata:
    """Two snapshots, then another schema, a branch and a tag at the first snapshot."""
    table = memory_lake.create_table("a.t", "id long")
    table.append(pa.table({"id": [1]}))
    table.append(pa.table({"id": [2]}))
    base = table.metadata
    first = base.snapshot_log[0].snapshot_id
    wider = Schema((*base.schema.fields, NestedField(2, "more", StringType())), schema_id=1)
    updates: list[Update] = [
        AddSchema(wider),
        SetCurrentSchema(1),
        SetSnapshotRef("dev", SnapshotRef(first, RefKind.BRANCH)),
        SetSnapshotRef("v1", SnapshotRef(first, RefKind.TAG)),
    ]
    return apply(base, updates, base.last_updated_ms + 10)


def id_of(version: ResolvedVersion) -> int:
    assert version.snapshot is not None
    return version.snapshot.snapshot_id


def test_nothing_and_main_mean_the_head_with_the_current_schema(metadata: TableMetadata) -> None:
    for as_of in (None, "main"):
        version = resolve_version(metadata, as_of)
        assert id_of(version) == metadata.current_snapshot_id
        assert version.schema.schema_id == 1


def test_a_branch_is_read_with_the_current_schema_a_tag_and_an_id_with_their_own(metadata: TableMetadata) -> None:
    first = metadata.snapshot_log[0].snapshot_id
    assert resolve_version(metadata, "dev").schema.schema_id == 1
    assert resolve_version(metadata, "v1").schema.schema_id == 0
    assert resolve_version(metadata, first).schema.schema_id == 0
    assert {id_of(resolve_version(metadata, ref)) for ref in ("dev", "v1", first)} == {first}


def test_times_with_and_without_zone_and_as_text(metadata: TableMetadata) -> None:
    first, second = metadata.snapshot_log
    at = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC) + datetime.timedelta(milliseconds=first.timestamp_ms)
    east = at.astimezone(datetime.timezone(datetime.timedelta(hours=5)))
    for moment in (at, east, at.replace(tzinfo=None), at.isoformat(), east.isoformat(), f"{at.replace(tzinfo=None)}"):
        assert id_of(resolve_version(metadata, moment)) == first.snapshot_id
    later = at + datetime.timedelta(days=1)
    assert id_of(resolve_version(metadata, later)) == second.snapshot_id


@pytest.mark.parametrize("as_of", [True, 12, "nowhere", "1066-10-14"])
def test_what_is_not_there_is_refused(metadata: TableMetadata, as_of: int | str) -> None:
    with pytest.raises((InvalidInput, NoSuchSnapshot)):
        resolve_version(metadata, as_of)
