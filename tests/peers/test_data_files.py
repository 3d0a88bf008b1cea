"""Data files on disk: their ids, their schema, and statistics as recomputed from their rows."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.conversions import from_bytes
from pyiceberg.io.pyarrow import (
    compute_statistics_plan,
    data_file_statistics_from_parquet_metadata,
    parquet_path_to_id_mapping,
)
from pyiceberg.manifest import DataFile
from pyiceberg.schema import Schema
from pyiceberg.table import StaticTable
from pyiceberg.types import BinaryType, DoubleType, FloatType, PrimitiveType, StringType
from tests.peers.case import TableCase
from tests.peers.gallery import Gallery
from tests.peers.normal import normal_values
from tests.peers.tables import all_tables, assorted_tables, many_row_groups, nested

WRITTEN = [case for case in all_tables() if case.steps]
ASSORTED = [case for case in assorted_tables() if case.steps]
LONGEST_IN_FOOTER = 4096
KEPT_CHARACTERS = 16  # of a text or bytes, in a bound


@dataclass(frozen=True)
class File:
    """A data file: what the manifest says, what the footer says, and its rows."""

    entry: DataFile
    path: Path
    parquet: pq.ParquetFile
    schema: Schema

    @property
    def rows(self) -> pa.Table:
        return self.parquet.read()


@pytest.mark.parametrize("case", WRITTEN, ids=lambda case: case.name)
def test_counts_and_bounds_are_those_of_the_rows(case: TableCase, gallery: Gallery) -> None:
    for file in _files(gallery, case):
        rows = file.rows
        assert file.entry.record_count == rows.num_rows
        for path, field_id, kind in _plain_columns(file.schema):
            values = _column(rows, path)
            assert file.entry.value_counts[field_id] == len(values)
            assert file.entry.null_value_counts[field_id] == values.count(None)
            assert file.entry.nan_value_counts.get(field_id, 0) == sum(map(_is_nan, values))
            known = [v for v in values if v is not None and not _is_nan(v)]
            _check_bounds(file.entry, field_id, kind, known)


# PyIceberg fails on a text whose upper bound would be a surrogate, and on dates past the calendar.
TAKEN = [c for c in WRITTEN if not c.name.endswith("_string") and c.name not in ("primitives", "beyond_the_calendar")]


@pytest.mark.parametrize("case", TAKEN, ids=lambda case: case.name)
def test_statistics_are_those_that_pyiceberg_takes_from_the_footer(case: TableCase, gallery: Gallery) -> None:
    for file in _files(gallery, case):
        plan, paths = compute_statistics_plan(file.schema, {}), parquet_path_to_id_mapping(file.schema)
        taken = data_file_statistics_from_parquet_metadata(file.parquet.metadata, plan, paths)
        theirs = taken.to_serialized_dict()
        assert file.entry.column_sizes == theirs["column_sizes"]
        assert file.entry.split_offsets == theirs["split_offsets"]
        for name in ("value_counts", "null_value_counts", "lower_bounds", "upper_bounds"):
            # It has bounds of no nested column, and counts of those inside lists and maps, which rule out nothing.
            # Of a column with NaN our footers say nothing, so that nobody is misled; the manifest does.
            nans = {field_id for field_id, count in (file.entry.nan_value_counts or {}).items() if count}
            columns = (field for field in file.schema.fields if field.field_type.is_primitive)
            compared = [field.field_id for field in columns if field.field_id not in nans]
            ours = getattr(file.entry, name)
            if name.endswith("bounds"):
                # Very long values have no bounds in the footer; the manifest does have them, cut.
                compared = [i for i in compared if i in theirs[name] or not _has_long_values(file, i)]
            assert {i: ours.get(i) for i in compared} == {i: theirs[name].get(i) for i in compared}, name


@pytest.mark.parametrize("case", ASSORTED, ids=lambda case: case.name)
def test_every_column_carries_its_field_id_at_every_depth(case: TableCase, gallery: Gallery) -> None:
    for file in _files(gallery, case):
        ids = dict(_field_ids(file.parquet.schema_arrow))
        assert ids == {name: field.field_id for name, field in _all_fields(file.schema)}


@pytest.mark.parametrize("case", ASSORTED, ids=lambda case: case.name)
def test_a_file_remembers_the_schema_that_it_was_written_with(case: TableCase, gallery: Gallery) -> None:
    for file in _files(gallery, case):
        metadata = file.parquet.metadata.metadata
        assert Schema.model_validate_json(metadata[b"iceberg.schema"]) == file.schema


def test_split_offsets_are_the_starts_of_row_groups(gallery: Gallery) -> None:
    files = list(_files(gallery, many_row_groups()))
    assert len(files) > 1
    assert max(file.parquet.num_row_groups for file in files) > 1
    for file in files:
        starts = [_start(file.parquet.metadata.row_group(i)) for i in range(file.parquet.num_row_groups)]
        assert file.entry.split_offsets == starts
        assert starts[0] == len(b"PAR1")


@pytest.mark.parametrize("case", ASSORTED, ids=lambda case: case.name)
def test_sizes_are_those_of_the_files(case: TableCase, gallery: Gallery) -> None:
    for file in _files(gallery, case):
        assert file.entry.file_size_in_bytes == file.path.stat().st_size


def test_required_columns_are_required_in_the_file(gallery: Gallery) -> None:
    for file in _files(gallery, nested()):
        assert not file.parquet.schema_arrow.field("id").nullable
        assert file.parquet.schema_arrow.field("s").nullable


def _has_long_values(file: File, field_id: int) -> bool:
    values = file.rows.column(file.schema.find_column_name(field_id) or "").to_pylist()
    return any(isinstance(v, str | bytes) and len(v) > LONGEST_IN_FOOTER for v in values)


def _check_bounds(entry: DataFile, field_id: int, kind: PrimitiveType, known: list[Any]) -> None:
    lower, upper = entry.lower_bounds.get(field_id), entry.upper_bounds.get(field_id)
    if not known:
        assert (lower, upper) == (None, None)
        return
    assert lower is not None
    least, most = min(known), max(known)
    if isinstance(kind, StringType | BinaryType):
        assert from_bytes(kind, lower) == least[:KEPT_CHARACTERS]
        assert _is_good_upper(None if upper is None else from_bytes(kind, upper), most)
        return
    assert upper is not None
    bounds: list[Any] = [from_bytes(kind, lower), from_bytes(kind, upper)]
    assert [_plain(bound) for bound in bounds] == [_plain(least), _plain(most)]
    if isinstance(kind, FloatType | DoubleType):
        # -0.0 comes before 0.0, and a bound that is zero is the outer one.
        assert [math.copysign(1, b) for b in bounds] == [math.copysign(1, least or -0.0), math.copysign(1, most or 0.0)]


def _is_good_upper(bound: Any, most: Any) -> bool:
    if bound is None:  # nothing so short is greater
        return most[:KEPT_CHARACTERS] in (("\U0010ffff" * KEPT_CHARACTERS), b"\xff" * KEPT_CHARACTERS)
    if len(most) <= KEPT_CHARACTERS:
        return bool(bound == most)
    # Greater than every text with this beginning, and than nothing more.
    return bool(bound > most and len(bound) <= KEPT_CHARACTERS and bound[:-1] == most[: len(bound) - 1])


def _plain(value: Any) -> Any:
    """Bring a bound to the form of `normal_values`."""
    return value.bytes if hasattr(value, "bytes") else value


def _column(rows: pa.Table, path: str) -> list[Any]:
    """Take a column's values in the form in which bounds are compared; numbers as numbers."""
    array = rows.column(path.split(".")[0]).combine_chunks()
    for name in path.split(".")[1:]:
        array = pa.compute.struct_field(array, name)
    if pa.types.is_floating(array.type):
        return array.to_pylist()  # type: ignore[no-any-return]
    if isinstance(array.type, pa.BaseExtensionType):
        array = array.storage
    return normal_values(array, array.type)


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)


def _plain_columns(schema: Schema) -> Iterator[tuple[str, int, PrimitiveType]]:
    """Yield the columns that are not inside a list or a map."""
    for name, field in _all_fields(schema):
        if isinstance(field.field_type, PrimitiveType) and field.field_id in _plain_ids(schema):
            yield name, field.field_id, field.field_type


def _plain_ids(schema: Schema) -> set[int]:
    repeated = {".element", ".key", ".value"}
    names = {field_id: schema.find_column_name(field_id) or "" for field_id in schema.field_ids}
    inside = {i for i, name in names.items() if any(f"{part}." in f"{name}." for part in repeated)}
    return set(names) - inside


def _all_fields(schema: Schema) -> Iterator[tuple[str, Any]]:
    for field_id in schema.field_ids:
        yield schema.find_column_name(field_id) or "", schema.find_field(field_id)


def _field_ids(schema: pa.Schema | pa.StructType, path: str = "") -> Iterator[tuple[str, int]]:
    for field in schema:
        yield from _field_ids_of(field, f"{path}{field.name}")


def _field_ids_of(field: pa.Field, name: str) -> Iterator[tuple[str, int]]:
    yield name, int(field.metadata[b"PARQUET:field_id"])
    kind = field.type
    if pa.types.is_struct(kind):
        yield from _field_ids(kind, f"{name}.")
    elif pa.types.is_list(kind):
        yield from _field_ids_of(kind.value_field, f"{name}.element")
    elif pa.types.is_map(kind):
        yield from _field_ids_of(kind.key_field, f"{name}.key")
        yield from _field_ids_of(kind.item_field, f"{name}.value")


def _start(group: Any) -> int:
    first = group.column(0)
    offsets = [first.data_page_offset, *([first.dictionary_page_offset] if first.has_dictionary_page else [])]
    return int(min(offsets))


def _files(gallery: Gallery, case: TableCase) -> Iterator[File]:
    table = StaticTable.from_metadata(gallery.table(case).metadata_location)
    for task in table.scan().plan_files():
        path = Path(task.file.file_path.removeprefix("file://"))
        with pq.ParquetFile(path) as parquet:
            yield File(task.file, path, parquet, table.schema())
