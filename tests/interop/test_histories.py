"""Tables with random histories are read by Iceberg Java: as they ended, as they were once, and with their lineage."""

import datetime as dt
import gzip
import json

import pyarrow as pa
import pytest
from tests.histories.features import PLAIN_KINDS, Features
from tests.histories.readings import make_history, readings
from tests.histories.spelling import spelt_alike
from tests.interop.iceberg_java import IcebergJava, IcebergJavaError
from tests.peers.gallery import Gallery
from tests.peers.normal import normal_rows

from icefield.codec.json.metadata_owner import ENTRY_KEY
from icefield.model.metadata import ROW_LINEAGE_VERSION
from icefield.types.datatypes import FixedType, TimeType

pytestmark = pytest.mark.interop

SEEDS = (*range(300, 322), 324, 351, 361, 375, 383, 390, 397, 414, 419)  # the last ones have initial defaults
LINEAGE = ("_row_id", "_last_updated_sequence_number")
# Spark 3.5 has no type for times of day, nanoseconds and the unknown; Iceberg Java 1.10.2 takes a fixed partition value
# for bytes with a length before them, and does not know the default `{}` of a struct or dates that became timestamps.
JAVA = Features(
    kinds=tuple(kind for kind in PLAIN_KINDS if not isinstance(kind, TimeType)),
    newer_kinds=(),
    not_partitioned_by=(FixedType,),
    struct_defaults=False,
    dates_become_timestamps=False,
)


@pytest.mark.parametrize("seed", SEEDS)
def test_java_reads_what_a_history_left(seed: int, gallery: Gallery, java: IcebergJava) -> None:
    history = make_history(gallery.lake, "java", seed, JAVA)
    location = history.table.metadata_location
    for reading in readings(history):
        assert reading.shows(java.read(location, reading.names, reading.snapshot_id))
    if history.past and history.model.format_version >= ROW_LINEAGE_VERSION:
        columns = [history.model.key.name, *LINEAGE]
        ours = history.table.scan(select=columns).to_arrow().read_all()
        assert _lineage(java.read(location, columns), ours.schema) == _lineage(ours, ours.schema)
    _check_nothing_is_lost(gallery.lake.store.read(location), java)


def test_java_does_not_know_what_is_left_out(gallery: Gallery, java: IcebergJava) -> None:
    table = gallery.lake.create_table("histories.java_gaps", "id long, day date", format_version=3)
    table.append(pa.table({"id": [1], "day": [dt.date(2020, 1, 2)]}))
    with table.evolve() as change:
        change.update_column_type("day", "timestamp")
    with pytest.raises(IcebergJavaError):
        java.read(table.metadata_location, ["day"])
    assert java.read(table.metadata_location, ["id"])["id"].to_pylist() == [1]
    with table.evolve() as change:
        change.add_column("s", "struct<x: int>", default={})
    with pytest.raises(IcebergJavaError, match="GenericRecord"):
        java.read(table.metadata_location, ["id"])


@pytest.mark.parametrize("version", [1, 2, 3])
def test_java_loses_nothing_of_compressed_metadata(version: int, gallery: Gallery, java: IcebergJava) -> None:
    table = gallery.lake.create_table(
        f"histories.gzip_{version}",
        "id long, day date",
        partition_by=["month(day)"],
        order_by=["id desc"],
        properties={"write.metadata.compression-codec": "gzip"},
        format_version=version,
    )
    table.append(pa.table({"id": [1, 2]}))
    assert table.metadata_location.endswith(".gz.metadata.json")
    _check_nothing_is_lost(gzip.decompress(gallery.lake.store.read(table.metadata_location)), java)


def _check_nothing_is_lost(metadata: bytes, java: IcebergJava) -> None:
    """Let Java read metadata and write it again: every key but our own, and every value, comes back."""
    ours = {key: value for key, value in json.loads(metadata).items() if key != ENTRY_KEY}
    assert _without_statistics(java.rewrite_table_metadata(metadata)) == spelt_alike(ours)


def _lineage(rows: pa.Table, like: pa.Schema) -> list[tuple[object, ...]]:
    return normal_rows(rows, like) if rows.num_rows else []


def _without_statistics(metadata: bytes) -> dict[str, object]:
    """Take out two lists that Java writes even where they are empty."""
    said: dict[str, object] = spelt_alike(json.loads(metadata))
    empty = [key for key in ("statistics", "partition-statistics") if said[key] == []]
    return {key: value for key, value in said.items() if key not in empty}
