"""Parquet settings of data files: a table's properties as options of Arrow's writer.

A property of a column that the table does not have, or no longer has, is ignored. Arrow does not write Bloom filters
for booleans, so a property that enables one is ignored too.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec
import pyarrow.parquet as pq

from icefield.codec.json.schema import encode_schema
from icefield.errors import InvalidInput
from icefield.parquet.nan_columns import parquet_path
from icefield.parquet.write.geo_columns import parquet_schema
from icefield.properties.table import (
    BLOOM_FILTER,
    BLOOM_FILTER_FPP,
    BLOOM_FILTER_MAX_BYTES,
    BLOOM_FILTER_NDV,
    PARQUET_CODEC,
    PARQUET_DICTIONARY,
    PARQUET_DICTIONARY_BYTES,
    PARQUET_LEVEL,
    PARQUET_PAGE_BYTES,
    PARQUET_PAGE_ROWS,
    PARQUET_PAGE_VERSION,
    PARQUET_ROW_GROUP_BYTES,
)
from icefield.storage.store import NewFile
from icefield.types.datatypes import BooleanType
from icefield.types.schema import Schema

# The key under which Iceberg Java stores the schema that a file was written with.
SCHEMA_KEY = "iceberg.schema"
# The lowest and highest level of a codec; the others have no levels.
LEVELS = {"zstd": (-7, 22), "gzip": (1, 9), "brotli": (0, 11), "lz4": (1, 12), "lz4_raw": (1, 12)}
# Where a name of Parquet is not that of Arrow, whose lz4 is Parquet's LZ4_RAW.
ARROW_CODECS = {"uncompressed": "none", "lz4_raw": "lz4"}
PAGE_VERSIONS = {"v1": "1.0", "v2": "2.0"}
BLOOM_BITS_PER_VALUE = 8  # bits that a value sets in a block (Parquet: Split Block Bloom Filters)
WRITE_BATCH_ROWS = 1024


@dataclass(frozen=True)
class BloomFilter:
    """Bloom filters of one column. values: the number of distinct values in a row group, if known.

    Arrow folds an oversized filter, so that small row groups get small filters.
    """

    values: int | None
    fpp: float
    max_bytes: int

    def options(self) -> dict[str, int | float]:
        """Return Arrow's options for the filter; Arrow rounds sizes up to a power of two."""
        largest_bytes = 1 << (self.max_bytes.bit_length() - 1)
        bits_per_value = -BLOOM_BITS_PER_VALUE / math.log(1 - self.fpp ** (1 / BLOOM_BITS_PER_VALUE))
        most = int(largest_bytes * 8 / bits_per_value)
        return {"ndv": max(1, min(self.values or most, most)), "fpp": self.fpp}


@dataclass(frozen=True)
class ColumnChoice:
    """The choices for the columns of one file, made from its first rows."""

    with_dictionary: Sequence[str]
    with_statistics: Sequence[str]


@dataclass(frozen=True)
class ParquetOptions:
    """The settings of Parquet files; columns are given by their Parquet paths.

    dictionaries: columns for which a dictionary is enabled or disabled explicitly.
    """

    codec: str
    level: int | None
    row_group_bytes: int
    page_bytes: int
    page_rows: int
    page_version: str
    dictionary_bytes: int
    dictionaries: Mapping[str, bool]
    bloom_filters: Mapping[str, BloomFilter]


def parquet_options(schema: Schema, properties: Mapping[str, str]) -> ParquetOptions:
    """Read the settings for files of a schema."""
    codec, level = PARQUET_CODEC.read(properties), PARQUET_LEVEL.read(properties)
    _check_level(codec, level)
    paths = {leaf.dotted: parquet_path(leaf) for leaf in schema.leaves}
    filtered = [
        leaf.dotted
        for leaf in schema.leaves
        if not isinstance(leaf.type, BooleanType) and BLOOM_FILTER.of(leaf.dotted).read(properties)
    ]
    return ParquetOptions(
        codec=codec,
        level=level,
        row_group_bytes=PARQUET_ROW_GROUP_BYTES.read(properties),
        page_bytes=PARQUET_PAGE_BYTES.read(properties),
        page_rows=PARQUET_PAGE_ROWS.read(properties),
        page_version=PARQUET_PAGE_VERSION.read(properties),
        dictionary_bytes=PARQUET_DICTIONARY_BYTES.read(properties),
        dictionaries=_dictionaries(paths, properties),
        bloom_filters={paths[name]: _bloom_filter(name, properties) for name in filtered},
    )


def open_writer(
    sink: NewFile,
    schema: Schema,
    options: ParquetOptions,
    columns: ColumnChoice,
    footers: list[pq.FileMetaData],
) -> pq.ParquetWriter:
    """Open a Parquet file for writing. footers: its footer is added when it is closed."""
    writer = pq.ParquetWriter(
        sink,
        parquet_schema(schema),
        compression=ARROW_CODECS.get(options.codec, options.codec),
        compression_level=options.level,
        data_page_size=options.page_bytes,
        max_rows_per_page=options.page_rows,
        # Arrow checks whether a page is full only after this many values.
        write_batch_size=min(WRITE_BATCH_ROWS, options.page_rows),
        data_page_version=PAGE_VERSIONS[options.page_version],
        dictionary_pagesize_limit=options.dictionary_bytes,
        use_dictionary=list(columns.with_dictionary),
        bloom_filter_options={path: bloom.options() for path, bloom in options.bloom_filters.items()} or None,
        store_schema=False,
        store_decimal_as_integer=True,  # (spec: Appendix A, Parquet)
        write_page_index=True,
        write_statistics=list(columns.with_statistics),
        metadata_collector=footers,
    )
    # Not through the Arrow schema: its metadata is omitted together with the schema itself.
    writer.add_key_value_metadata({SCHEMA_KEY: msgspec.json.encode(encode_schema(schema))})
    return writer


def _dictionaries(paths: Mapping[str, str], properties: Mapping[str, str]) -> dict[str, bool]:
    wishes = {path: PARQUET_DICTIONARY.of(name).read(properties) for name, path in paths.items()}
    return {path: wish for path, wish in wishes.items() if wish is not None}


def _bloom_filter(column: str, properties: Mapping[str, str]) -> BloomFilter:
    return BloomFilter(
        values=BLOOM_FILTER_NDV.of(column).read(properties),
        fpp=BLOOM_FILTER_FPP.of(column).read(properties),
        max_bytes=BLOOM_FILTER_MAX_BYTES.read(properties),
    )


def _check_level(codec: str, level: int | None) -> None:
    if level is None:
        return
    if codec not in LEVELS:
        raise InvalidInput(f"{PARQUET_LEVEL.key} is {level}, but {codec} has no levels")
    least, most = LEVELS[codec]
    if not least <= level <= most:
        raise InvalidInput(f"{PARQUET_LEVEL.key} is {level}, but {codec} has levels from {least} to {most}")
