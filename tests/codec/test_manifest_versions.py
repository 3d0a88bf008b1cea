"""The fields of manifests and manifest lists, one by one, as the spec's tables have them for each version."""

import json
from typing import Any

import pytest

from icefield.codec.avro.schema import Record
from icefield.codec.manifest.list_schema import list_schema_json
from icefield.codec.manifest.schema import entry_schema_json

# id, name: what versions 1, 2 and 3 say of it: required, optional, or not there. (spec: Manifest Lists)
LIST_FIELDS = """
    500 manifest_path         r r r
    501 manifest_length       r r r
    502 partition_spec_id     r r r
    517 content               - r r
    515 sequence_number       - r r
    516 min_sequence_number   - r r
    503 added_snapshot_id     r r r
    504 added_files_count     o r r
    505 existing_files_count  o r r
    506 deleted_files_count   o r r
    512 added_rows_count      o r r
    513 existing_rows_count   o r r
    514 deleted_rows_count    o r r
    507 partitions            o o o
    519 key_metadata          o o o
    520 first_row_id          - - o
"""
# (spec: Manifest Entry Fields)
ENTRY_FIELDS = """
    0 status                r r r
    1 snapshot_id           r o o
    3 sequence_number       - o o
    4 file_sequence_number  - o o
    2 data_file             r r r
"""
# (spec: Data File Fields) Without those that are not to be written: file_ordinal, sort_columns, distinct_counts.
DATA_FILE_FIELDS = """
    134 content                - r r
    100 file_path              r r r
    101 file_format            r r r
    102 partition              r r r
    103 record_count           r r r
    104 file_size_in_bytes     r r r
    105 block_size_in_bytes    r - -
    108 column_sizes           o o o
    109 value_counts           o o o
    110 null_value_counts      o o o
    137 nan_value_counts       o o o
    125 lower_bounds           o o o
    128 upper_bounds           o o o
    131 key_metadata           o o o
    132 split_offsets          o o o
    135 equality_ids           - o o
    140 sort_order_id          o o o
    142 first_row_id           - - o
    143 referenced_data_file   - o o
    144 content_offset         - - o
    145 content_size_in_bytes  - - o
"""


def expected(table: str, version: int) -> list[tuple[int, str, bool]]:
    """The fields of a version in order: id, name, whether it is required."""
    lines = [line.split() for line in table.strip().splitlines()]
    return [(int(line[0]), line[1], line[1 + version] == "r") for line in lines if line[1 + version] != "-"]


def found(fields: list[dict[str, Any]]) -> list[tuple[int, str, bool]]:
    return [(f["field-id"], f["name"], not isinstance(f["type"], list)) for f in fields]


@pytest.mark.parametrize("version", [1, 2, 3])
def test_manifest_lists_have_the_fields_of_their_version(version: int) -> None:
    assert found(json.loads(list_schema_json(version))["fields"]) == expected(LIST_FIELDS, version)


@pytest.mark.parametrize("version", [1, 2, 3])
def test_manifests_have_the_fields_of_their_version(version: int) -> None:
    entry = json.loads(entry_schema_json(version, Record(())))["fields"]
    assert found(entry) == expected(ENTRY_FIELDS, version)
    assert found(entry[-1]["type"]["fields"]) == expected(DATA_FILE_FIELDS, version)
