"""Properties of Parquet files show in the files: codec, level, row groups, pages, dictionaries, Bloom filters."""

import random
from functools import cache
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from icefield.errors import InvalidInput
from icefield.lake import Lake
from icefield.parquet.write.options import BloomFilter

ROWS = 30_000
SCHEMA = "id long, name string, few string, ok boolean, deep struct<n: long>, tags list<string>"


@cache
def rows(count: int = ROWS) -> pa.Table:
    rng = random.Random(5)
    return pa.table(
        {
            "id": range(count),
            "name": [f"{rng.getrandbits(64):x}" for _ in range(count)],
            "few": [f"word {i % 7}" for i in range(count)],
            "ok": [i % 2 == 0 for i in range(count)],
            "deep": [{"n": i % 11} for i in range(count)],
            "tags": [[f"tag {i % 3}"] for i in range(count)],
        }
    )


def footer(lake: Lake, count: int = ROWS, **properties: str) -> pq.FileMetaData:
    keys = {f"write.parquet.{key.replace('_', '-')}": value for key, value in properties.items()}
    return footer_with(lake, keys, count)


def footer_with(lake: Lake, keys: dict[str, str], count: int = ROWS) -> pq.FileMetaData:
    table = lake.create_table("s.t", SCHEMA, properties=keys)
    table.append(rows(count))
    (path,) = table.scan().files()["file_path"].to_pylist()
    assert table.count() == count
    with lake.store.open_input(path) as opened:
        return pq.read_metadata(opened)


def column(found: pq.FileMetaData, path: str, group: int = 0) -> Any:
    chunks = (found.row_group(group).column(i) for i in range(found.num_columns))
    return next(chunk for chunk in chunks if chunk.path_in_schema == path)


@pytest.mark.parametrize("codec", ["zstd", "snappy", "gzip", "lz4", "brotli", "uncompressed"])
def test_codec_is_that_of_the_pages(memory_lake: Lake, codec: str) -> None:
    assert column(footer(memory_lake, 10, compression_codec=codec), "name").compression.lower() == codec


def test_a_higher_level_makes_smaller_pages(memory_lake: Lake) -> None:
    low, high = (
        column(footer_of_level(memory_lake, name, level), "name").total_compressed_size
        for name, level in (("a", "-5"), ("b", "9"))
    )
    assert high < low


def footer_of_level(lake: Lake, name: str, level: str) -> pq.FileMetaData:
    table = lake.create_table(f"s.{name}", SCHEMA, properties={"write.parquet.compression-level": level})
    table.append(rows())
    with lake.store.open_input(table.scan().files()["file_path"][0].as_py()) as opened:
        return pq.read_metadata(opened)


@pytest.mark.parametrize(("codec", "level"), [("zstd", "23"), ("gzip", "0"), ("snappy", "1"), ("lz4", "99")])
def test_a_level_that_the_codec_does_not_have_is_refused(memory_lake: Lake, codec: str, level: str) -> None:
    table = memory_lake.create_table("s.t", SCHEMA)
    with pytest.raises(InvalidInput, match="compression-level"):
        table.append(rows(1), options={"compression-codec": codec, "compression-level": level})
    assert table.count() == 0


def test_row_groups_are_closed_at_their_size(memory_lake: Lake) -> None:
    assert footer(memory_lake, row_group_size_bytes="500000").num_row_groups > 2


@pytest.mark.parametrize("keys", [{"page-row-limit": "500"}, {"page-size-bytes": "2000"}])
def test_pages_are_closed_at_their_limit(memory_lake: Lake, keys: dict[str, str]) -> None:
    usual, small = (
        memory_lake.create_table(f"s.{name}", "id long", properties={f"write.parquet.{k}": v for k, v in given.items()})
        for name, given in (("usual", {}), ("small", keys))
    )
    sizes = []
    for table in (usual, small):
        table.append(rows().select(["id"]))
        sizes.append(table.scan().files()["file_size_in_bytes"][0].as_py())
    # Every page has a header, and a place in the page index.
    assert sizes[1] > sizes[0] + 50 * 20


def test_pages_of_version_two_are_read_again(memory_lake: Lake) -> None:
    footer(memory_lake, page_version="v2")
    assert memory_lake.table("s.t").scan().to_arrow().read_all().num_rows == ROWS


def test_columns_whose_values_come_again_have_a_dictionary(memory_lake: Lake) -> None:
    found = footer(memory_lake)
    with_dictionary = {
        chunk.path_in_schema
        for chunk in (found.row_group(0).column(i) for i in range(found.num_columns))
        if chunk.has_dictionary_page
    }
    assert with_dictionary == {"few", "deep.n", "tags.list.element"}


@pytest.mark.parametrize(("different", "expected"), [(10_000, True), (29_000, False)])
def test_rows_that_are_not_looked_at_are_guessed(memory_lake: Lake, different: int, expected: bool) -> None:
    rng = random.Random(3)
    table = memory_lake.create_table("s.late", "id long")
    table.append(pa.table({"id": [rng.randrange(different) for _ in range(ROWS)]}))
    with memory_lake.store.open_input(table.scan().files()["file_path"][0].as_py()) as opened:
        assert pq.read_metadata(opened).row_group(0).column(0).has_dictionary_page == expected


def test_no_dictionary_is_begun_that_will_be_too_large(memory_lake: Lake) -> None:
    found = footer(memory_lake, dict_size_bytes="20")
    assert not column(found, "few").has_dictionary_page


def test_a_property_decides_about_a_dictionary(memory_lake: Lake) -> None:
    prefix = "write.parquet.dict-encoding-enabled.column."
    found = footer_with(memory_lake, {f"{prefix}name": "true", f"{prefix}few": "false", f"{prefix}deep.n": "false"})
    assert column(found, "name").has_dictionary_page
    assert not column(found, "few").has_dictionary_page
    assert not column(found, "deep.n").has_dictionary_page


def test_a_dictionary_is_given_up_at_its_size(memory_lake: Lake) -> None:
    prefix = "write.parquet.dict-encoding-enabled.column."
    found = footer_with(memory_lake, {f"{prefix}name": "true", "write.parquet.dict-size-bytes": "10000"})
    assert column(found, "name").dictionary_page_offset is not None
    assert column(found, "name").data_page_offset - column(found, "name").dictionary_page_offset < 40_000


def test_chosen_columns_get_bloom_filters(memory_lake: Lake) -> None:
    prefix = "write.parquet.bloom-filter-enabled.column."
    found = footer_with(
        memory_lake,
        {f"{prefix}{name}": "true" for name in ("name", "deep.n", "tags.element", "ok", "nowhere")}
        | {f"{prefix}few": "false"},
    )
    filtered = {
        chunk.path_in_schema
        for chunk in (found.row_group(0).column(i) for i in range(found.num_columns))
        if chunk.bloom_filter_offset
    }
    assert filtered == {"name", "deep.n", "tags.list.element"}


@pytest.mark.parametrize("max_bytes", [1000, 4096, 100_000])
def test_a_bloom_filter_is_no_larger_than_allowed(memory_lake: Lake, max_bytes: int) -> None:
    keys = {
        "write.parquet.bloom-filter-enabled.column.name": "true",
        "write.parquet.bloom-filter-max-bytes": str(max_bytes),
    }
    length = column(footer_with(memory_lake, keys), "name").bloom_filter_length
    assert max_bytes / 4 < length <= max_bytes + 64  # with its header


def test_fewer_false_positives_take_a_larger_bloom_filter(memory_lake: Lake) -> None:
    enabled = {"write.parquet.bloom-filter-enabled.column.name": "true"}
    lengths = []
    for fpp in ("0.3", "0.001"):
        table = memory_lake.create_table(
            f"s.t{fpp[2:]}", SCHEMA, properties=enabled | {"write.parquet.bloom-filter-fpp.column.name": fpp}
        )
        table.append(rows())
        with memory_lake.store.open_input(table.scan().files()["file_path"][0].as_py()) as opened:
            lengths.append(column(pq.read_metadata(opened), "name").bloom_filter_length)
    assert lengths[0] < lengths[1]


def test_a_small_file_gets_a_small_bloom_filter(memory_lake: Lake) -> None:
    found = footer_with(memory_lake, {"write.parquet.bloom-filter-enabled.column.name": "true"}, 100)
    assert column(found, "name").bloom_filter_length < 1000


def test_known_values_and_the_size_bound_the_filter() -> None:
    assert BloomFilter(500, 0.01, 1 << 20).options() == {"ndv": 500, "fpp": 0.01}
    assert BloomFilter(1 << 40, 0.01, 1 << 20).options() == BloomFilter(None, 0.01, 1 << 20).options()


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("write.parquet.bloom-filter-fpp.column.id", "1"),
        ("write.parquet.bloom-filter-fpp.column.id", "0"),
        ("write.parquet.bloom-filter-enabled.column.id", "yes"),
        ("write.parquet.bloom-filter-ndv.column.id", "0"),
        ("write.parquet.dict-encoding-enabled.column.id", "maybe"),
        ("write.parquet.compression-level", "high"),
        ("write.parquet.page-version", "v3"),
        ("write.distribution-mode", "random"),
        ("write.spark.advisory-partition-size-bytes", "-1"),
    ],
)
def test_a_value_that_means_nothing_is_refused_when_it_is_set(memory_lake: Lake, key: str, value: str) -> None:
    with pytest.raises(InvalidInput, match=key):
        memory_lake.create_table("s.t", SCHEMA, properties={key: value})
