"""Manifests: what is encoded is decoded, by us and by others; only what is wanted is decoded."""

import io
from decimal import Decimal
from random import Random
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.codec.cases import LOCATION, WIDE, Manifest, entry, header, make_manifest, manifests, plain, table
from tests.effort import effort

from icefield.codec.avro.compression import CODECS
from icefield.codec.avro.container import parse_header
from icefield.codec.manifest.columns import ALL, PLAN, ManifestColumns
from icefield.codec.manifest.decode import decode_manifest, decode_manifests
from icefield.codec.manifest.encode import encode_manifest
from icefield.codec.manifest.header import decode_manifest_header
from icefield.codec.manifest.partition import avro_name
from icefield.codec.manifest.rows import ManifestEntries
from icefield.codec.manifest.schema import DATA_FILE_FIELDS, ENTRY_FIELDS
from icefield.errors import CorruptFile, InvalidInput
from icefield.types.datatypes import DecimalType, IntegerType, LongType, NestedField, StringType

pytestmark = pytest.mark.usefixtures("engine")

EFFORT = settings(effort(80), suppress_health_check=[HealthCheck.function_scoped_fixture])
STATISTICS = {
    "lower": "lower_bounds",
    "upper": "upper_bounds",
    "value_count": "value_counts",
    "null_count": "null_value_counts",
    "nan_count": "nan_value_counts",
}


def encode(rows: pa.Table, partition: Any = (), version: int = 2, codec: str = "deflate") -> bytes:
    return encode_manifest(
        ManifestEntries.trusted(rows), header(version, partition=partition), partition, LOCATION, codec
    )


def fastavro_rows(data: bytes) -> list[Any]:
    """Rows as fastavro reads them, with logical types hidden from it, so that values stay as they are stored."""
    return list(fastavro.reader(io.BytesIO(data.replace(b'"logicalType"', b'"hiddenTypes"'))))


@EFFORT
@given(manifests(), st.sampled_from(CODECS))
def test_decode_gives_back_what_was_encoded(made: Manifest, codec: str) -> None:
    decoded = decode_manifest(encode(made.table, made.partition, made.version, codec), LOCATION, ALL)
    expected = made.table
    if made.version == 1:
        expected = expected.set_column(4, "content", pa.nulls(expected.num_rows, pa.int32()))
    assert decoded.select(expected.column_names).table.equals(expected)


@EFFORT
@given(manifests())
def test_every_value_is_what_fastavro_reads(made: Manifest) -> None:
    data = encode(made.table, made.partition, made.version, "null")
    read = fastavro_rows(data)
    assert len(read) == len(made.rows)
    decoded = decode_manifest(data, LOCATION, ALL)
    for known in (*ENTRY_FIELDS, *DATA_FILE_FIELDS):
        if known.is_in(made.version) and known.name in decoded.column_names:
            values = [(row if known in ENTRY_FIELDS else row["data_file"])[known.name] for row in read]
            if pa.types.is_map(known.kind):
                values = [v if v is None else [(pair["key"], pair["value"]) for pair in v] for v in values]
            assert plain(decoded[known.name]) == values, known.name
    for field in made.partition:
        values = [row["data_file"]["partition"][avro_name(field.name)] for row in read]
        if isinstance(field.type, DecimalType):
            values = [v if v is None else Decimal(int.from_bytes(v, "big", signed=True)) for v in values]
            scaled = plain(decoded[f"partition.{field.field_id}"])
            assert [v if v is None else v.scaleb(field.type.scale, WIDE) for v in scaled] == values
        else:
            assert plain(decoded[f"partition.{field.field_id}"]) == values


@EFFORT
@given(manifests(), st.lists(st.sampled_from([1, 2, 3, 4, 9, 40, 2147483546]), max_size=6))
def test_single_statistics_are_those_of_the_whole_maps(made: Manifest, ids: list[int]) -> None:
    decoded = decode_manifest(encode(made.table, made.partition, made.version), LOCATION, PLAN.with_statistics(ids))
    for prefix, name in STATISTICS.items():
        for field_id in ids:
            expected = [dict(row[name] or ()).get(field_id) for row in made.rows]
            assert decoded[f"{prefix}.{field_id}"].to_pylist() == expected
    assert decoded["file_path"].to_pylist() == [row["file_path"] for row in made.rows]


@EFFORT
@given(st.lists(manifests(2, ()), min_size=1, max_size=5))
def test_many_manifests_at_once_are_the_same_rows(made: list[Manifest]) -> None:
    files = [(f"m{i}", encode(each.table)) for i, each in enumerate(made)]
    together = decode_manifests(files, ALL)
    expected = pa.concat_tables([each.table for each in made])
    assert together.select(expected.column_names).table.equals(expected)
    assert together["manifest"].to_pylist() == [i for i, each in enumerate(made) for _ in each.rows]


def test_manifests_of_two_schemas_keep_their_order() -> None:
    narrow, wide = NestedField(1000, "p", IntegerType()), NestedField(1000, "p", LongType())
    ints = table([entry(**{"partition.1000": 1})], [narrow])
    longs = table([entry(**{"partition.1000": 2**40})], [wide])
    files = [("a", encode(ints, [narrow])), ("b", encode(longs, [wide])), ("c", encode(ints, [narrow]))]
    decoded = decode_manifests(files)
    assert decoded["manifest"].to_pylist() == [0, 1, 2]
    assert decoded["partition.1000"].to_pylist() == [1, 2**40, 1]


def test_manifests_whose_partition_types_cannot_meet_are_refused_together() -> None:
    number, text = NestedField(1000, "p", IntegerType()), NestedField(1000, "p", StringType())
    files = [
        ("a", encode(table([entry(**{"partition.1000": 1})], [number]), [number])),
        ("b", encode(table([entry(**{"partition.1000": "x"})], [text]), [text])),
    ]
    with pytest.raises(InvalidInput, match="different partition specs"):
        decode_manifests(files)


def test_the_bad_one_among_many_is_named() -> None:
    good = encode(table([entry()]), codec="null")
    bad = good.replace(b"s3://lake/data/0.parquet", b"s3://lake/data/\xff.parquet")
    with pytest.raises(CorruptFile, match="UTF-8") as error:
        decode_manifests([("good", good), ("bad", bad), ("also good", good)])
    assert error.value.location == "bad"


def test_the_bytes_of_a_data_file_can_be_had() -> None:
    rows = table([entry(file_path="x"), entry(file_path="y", record_count=7)])
    data = encode(rows, codec="null")
    spans = decode_manifest(data, LOCATION, ManifestColumns(("status",), data_file=True))["data_file"].to_pylist()
    assert all(span in data for span in spans)
    assert spans[0] != spans[1]
    assert [span[:4] for span in spans] == [b"\x00\x02x\x0e", b"\x00\x02y\x0e"]


def test_columns_that_do_not_exist_are_refused() -> None:
    with pytest.raises(InvalidInput, match="unknown manifest columns: distance"):
        ManifestColumns(("status", "distance"))


def test_no_manifests_are_refused() -> None:
    with pytest.raises(InvalidInput, match="no manifests"):
        decode_manifests([])


@pytest.mark.parametrize(("name", "value"), [("status", 3), ("content", 9), ("status", -1)])
def test_a_status_or_content_that_does_not_exist_is_corrupt(name: str, value: int) -> None:
    with pytest.raises(CorruptFile, match=name):
        decode_manifest(
            encode(table([entry(**{"sequence_number": 1, "file_sequence_number": 1, name: value})])), LOCATION
        )


def test_an_empty_manifest_has_all_columns() -> None:
    decoded = decode_manifest(encode(table([])), LOCATION, PLAN.with_statistics([3]))
    assert decoded.num_rows == 0
    assert decoded.table.schema.field("lower.3").type == pa.binary()


@pytest.mark.parametrize("version", [1, 2, 3])
@pytest.mark.parametrize("content", [0, 1])
def test_the_header_says_what_was_put_in(version: int, content: int) -> None:
    made = header(version, content if version > 1 else 0)
    data = encode_manifest(ManifestEntries.trusted(table([entry(snapshot_id=1)])), made, (), LOCATION)
    assert decode_manifest_header(data, LOCATION) == made


def test_a_file_cut_off_anywhere_is_refused() -> None:
    made = make_manifest(5, version=3, rows=9)
    data = encode(made.table, made.partition, 3, "null")
    first = parse_header(data, LOCATION).end
    for size in sorted(Random(0).sample(range(first + 1, len(data)), 150)):
        with pytest.raises(CorruptFile):
            decode_manifest(data[:size], LOCATION)
