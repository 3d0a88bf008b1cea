"""Partition values in our manifests: those that PyIceberg's transforms give for the rows of each file."""

import math
from collections.abc import Iterator
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyiceberg.manifest import DataFile
from pyiceberg.table import StaticTable
from tests.peers.avro_files import read_avro
from tests.peers.case import TableCase
from tests.peers.gallery import Gallery
from tests.peers.normal import normal_values
from tests.peers.samples import SAMPLES
from tests.peers.tables import column, partitioned_tables

PARTITIONED = partitioned_tables()
OF_FLOATS = ("identity_float", "identity_double")


@pytest.mark.parametrize("case", [c for c in PARTITIONED if c.name not in OF_FLOATS], ids=lambda case: case.name)
def test_every_row_is_in_the_partition_of_its_value(case: TableCase, gallery: Gallery) -> None:
    table = StaticTable.from_metadata(gallery.table(case).metadata_location)
    (field,) = table.spec().fields
    source = table.schema().find_field(field.source_id)
    transform = field.transform.transform(source.field_type)
    for file in _data_files(table):
        for value in _values(file, source.name, case):
            assert file.partition[0] == (None if value is None else transform(value))


@pytest.mark.parametrize("case", [c for c in PARTITIONED if c.name in OF_FLOATS], ids=lambda case: case.name)
def test_zeros_of_either_sign_and_nan_are_partitions_of_their_own(case: TableCase, gallery: Gallery) -> None:
    table = StaticTable.from_metadata(gallery.table(case).metadata_location)
    snapshot = table.current_snapshot()
    assert snapshot
    found: dict[str, str] = {}
    for manifest in snapshot.manifests(table.io):
        for record in read_avro(manifest.manifest_path).records:
            file = record["data_file"]
            (partition,) = file["partition"].values()
            path = file["file_path"].removeprefix("file://")
            values = {repr(v) for v in pq.read_table(path, partitioning=None).column(1).to_pylist()}
            assert values == {repr(partition)}
            found[repr(partition)] = path
    assert {"-0.0", "0.0", "nan", "inf", "-inf", "None"} < found.keys()


def test_partitions_of_one_manifest_are_summarised_with_both_zeros(gallery: Gallery) -> None:
    (case,) = (c for c in PARTITIONED if c.name == "identity_double")
    table = gallery.lake.create_table("peers.zeros", case.schema, partition_by=case.partition_by)
    values = SAMPLES["double"].values
    zeros = case.rows.filter([row is not None and row == 0 for row in case.rows.column(column("double")).to_pylist()])
    assert zeros.num_rows == sum(value == 0 for value in values)
    table.append(zeros)
    snapshot = StaticTable.from_metadata(table.metadata_location).current_snapshot()
    assert snapshot
    (manifest,) = read_avro(snapshot.manifest_list).records
    (summary,) = manifest["partitions"]
    assert (summary["lower_bound"], summary["upper_bound"]) == (b"\0" * 7 + b"\x80", b"\0" * 8)


def _data_files(table: StaticTable) -> Iterator[DataFile]:
    return (task.file for task in table.scan().plan_files())


def _values(file: DataFile, name: str, case: TableCase) -> list[Any]:
    """Take a column's values as PyIceberg's transforms want them: dates and times as numbers."""
    path = file.file_path.removeprefix("file://")
    array = pq.read_table(path, columns=[name], partitioning=None).column(0).combine_chunks()
    values = normal_values(array, case.schema.field(name).type)
    assert not any(isinstance(value, float) and math.isnan(value) for value in values)
    return values
