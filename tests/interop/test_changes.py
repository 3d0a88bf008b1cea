"""Row-level changes by both engines, and by Iceberg Java in between: every reader has the rows of the model.

PyIceberg and DuckDB read the table after every step, as far as they know its deletes; Iceberg Java reads it at the end,
with the lineage of its rows.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from tests.effort import seeds
from tests.engine.merge_model import AsSource
from tests.engine.verb_history import Look, Place, VerbHistory
from tests.interop.handed_table import HandedTable
from tests.interop.iceberg_java import IcebergJava
from tests.interop.java_changes import JavaWriter
from tests.interop.java_quirks import LOST_KEYS
from tests.peers.changed_rows import check_duckdb, check_pyiceberg
from tests.peers.duckdb_reader import DuckDBReader
from tests.peers.gallery import Gallery
from tests.peers.normal import normal_rows

from icefield.engine.choose import EngineName
from icefield.model.metadata import ROW_LINEAGE_VERSION

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.interop
LOCAL: Mapping[EngineName, AsSource] = {"local": lambda rows: rows}


@pytest.fixture(scope="module")
def duckdb_reader() -> Iterator[DuckDBReader]:
    with DuckDBReader() as reader:
        yield reader


@pytest.mark.parametrize("seed", seeds(8, deep=300))
def test_java_reads_what_changes_on_the_local_engine_left(
    seed: int, gallery: Gallery, java: IcebergJava, duckdb_reader: DuckDBReader
) -> None:
    history = VerbHistory(Place(gallery.lake, f"changes.local_{seed}"), seed, LOCAL, _look(duckdb_reader))
    history.run(by_equality=history.kind != LOST_KEYS)
    _check_java(history, java)


@pytest.mark.parametrize("seed", seeds(3, deep=100))
def test_java_reads_what_changes_on_both_engines_left(
    seed: int, gallery: Gallery, java: IcebergJava, duckdb_reader: DuckDBReader, spark: "SparkSession"
) -> None:
    def as_frame(rows: pa.Table) -> "DataFrame":
        # Spark takes Arrow's timestamps without a zone for those with one.
        kinds = {f.name: "timestamp_ntz" for f in rows.schema if pa.types.is_timestamp(f.type)}
        frame = spark.createDataFrame(rows)
        return frame.withColumns({name: frame[name].cast(kind) for name, kind in kinds.items()})

    engines: Mapping[EngineName, AsSource] = {**LOCAL, "spark": as_frame}
    history = VerbHistory(Place(gallery.lake, f"changes.both_{seed}"), 500 + seed, engines, _look(duckdb_reader))
    history.run(by_equality=history.kind != LOST_KEYS)
    _check_java(history, java)


@pytest.mark.parametrize("seed", seeds(4, deep=100))
def test_we_go_on_from_what_java_changed(
    seed: int,
    gallery: Gallery,
    java: IcebergJava,
    duckdb_reader: DuckDBReader,
    interop_folder: Path,
    tmp_path: Path,
) -> None:
    java.sql("CREATE NAMESPACE IF NOT EXISTS java.changes")
    handed = HandedTable(gallery.lake, interop_folder, "changes", f"turns_{seed}")
    place = Place(gallery.lake, f"changes.turns_{seed}", f"file://{handed.location}")
    history, writer = VerbHistory(place, 800 + seed, LOCAL, _look(duckdb_reader)), JavaWriter(java, handed, tmp_path)
    history.run(lambda: writer.change(history), by_equality=history.kind != LOST_KEYS)
    assert writer.changes
    _check_java(history, java)


def test_java_loses_keys_of_fixed_bytes(gallery: Gallery, java: IcebergJava) -> None:
    table = gallery.lake.create_table("changes.fixed", f"id {LOST_KEYS}, n long")

    def rows(*pairs: tuple[bytes, int]) -> pa.Table:
        return pa.table({"id": pa.array([key for key, _ in pairs], pa.binary(3)), "n": [n for _, n in pairs]})

    table.append(rows((b"abc", 1), (b"abd", 2)))
    table.upsert(rows((b"abc", 7), (b"abd", 8)), ["id"], mode="equality")
    assert sorted(table.scan().to_arrow().read_all()["n"].to_pylist()) == [7, 8]
    assert sorted(java.read(table.metadata_location, ["n"])["n"].to_pylist()) == [1, 7, 8]
    table.convert_equality_deletes()
    assert sorted(java.read(table.metadata_location, ["n"])["n"].to_pylist()) == [7, 8]


def _look(duckdb: DuckDBReader) -> Look:
    def look(history: VerbHistory) -> None:
        check_pyiceberg(history)
        check_duckdb(history, duckdb)

    return look


def _check_java(history: VerbHistory, java: IcebergJava) -> None:
    lineage = history.table.metadata.format_version >= ROW_LINEAGE_VERSION
    expected = history.expected_rows(lineage=lineage)
    found = java.read(history.table.metadata_location, expected.column_names)
    assert (normal_rows(found, expected.schema) if found.num_rows else []) == normal_rows(expected, expected.schema), (
        history.steps
    )
