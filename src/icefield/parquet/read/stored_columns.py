"""The columns that a data file stores, with their names and types.

A reader that looks up columns by name, or compares stored values without converting them, must know what the file
stores. The table's schemas do not prove it: old ones may have been removed, and a writer may have used an older one.
There are two sources.

    the file's name   files of this package end in a fingerprint of their columns, such as `-s0b1f3a22c94e.parquet`. It
                      identifies the schema of the file among the known ones, or shows that it is none of them.
    from the file's footer for files of other writers.

    stored_columns(schema "id long, s struct<x: int>")
      → {1: ("id", "long"), 2: ("s", "struct<3:'x':int>")}
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from hashlib import blake2b
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from icefield.parquet.file_schema import stored_fields
from icefield.types.arrow import field_id_of
from icefield.types.datatypes import DecimalType, FixedType, ListType, MapType, NestedField, StructType, Type
from icefield.types.metadata_columns import is_metadata_column
from icefield.types.schema import Schema

# Increment it when this package stores a type in a new way, so that older files are not misread.
_VERSION = "1"
_DIGEST_BYTES = 6
_IN_NAME = rf"-s(?P<fingerprint>[0-9a-f]{{{2 * _DIGEST_BYTES}}})\.parquet$"


@dataclass(frozen=True)
class StoredColumns:
    """The top-level columns of a file. by_id: name and type, as a string that is unique for every stored type.

    other_names: of columns without a field id.
    """

    by_id: Mapping[int, tuple[str, str]]
    other_names: tuple[str, ...] = ()

    @cached_property
    def names_ignoring_case(self) -> Counter[str]:
        """How many columns have each name."""
        names = (*(name for name, _ in self.by_id.values()), *self.other_names)
        return Counter(name.lower() for name in names)


def stored_columns(schema: Schema) -> StoredColumns:
    """Return the columns of files that this package writes for a schema."""
    own = (f for f in stored_fields(schema) if not is_metadata_column(f.field_id))
    return StoredColumns({f.field_id: (f.name, describe_type(f.type)) for f in own})


def fingerprint_of(columns: StoredColumns) -> str:
    """Return a short fingerprint of the columns, whatever their order."""
    digest = blake2b(_VERSION.encode(), digest_size=_DIGEST_BYTES)
    for field_id, (name, kind) in sorted(columns.by_id.items()):
        digest.update(f"\n{field_id}:{name!r}:{kind}".encode())
    return digest.hexdigest()


def file_name(stem: str, fingerprint: str) -> str:
    """Return the name of a data file whose columns have a fingerprint."""
    return f"{stem}-s{fingerprint}.parquet"


def fingerprints_in(locations: pa.ChunkedArray) -> pa.Array:
    """Return the fingerprint in the name of each file, null where there is none."""
    found = pc.extract_regex(locations.cast(pa.string()), _IN_NAME)
    array = found.combine_chunks() if isinstance(found, pa.ChunkedArray) else found
    return pc.struct_field(array, "fingerprint")


def find_stored_columns(schemas: Iterable[Schema], fingerprints: set[str]) -> dict[str, StoredColumns]:
    """Return the columns for each fingerprint that matches one of the schemas."""
    found: dict[str, StoredColumns] = {}
    for schema in schemas:
        if len(found) == len(fingerprints):
            break
        fingerprint, columns = _with_fingerprint(schema)
        if fingerprint in fingerprints:
            found[fingerprint] = columns
    return found


def footer_columns(footer: pq.FileMetaData) -> StoredColumns:
    """Return the columns of a file, from its footer."""
    physical = footer.schema.to_arrow_schema()
    columns = iter([footer.schema.column(at) for at in range(footer.num_columns)])
    try:
        described = [(f, _describe_stored(f.type, columns)) for f in physical]
    except StopIteration:
        described = []
    if not described or next(columns, None) is not None:  # a layout that does not map to Arrow column by column
        return StoredColumns({}, tuple(physical.names))
    known = {i: (f.name, kind) for f, kind in described if (i := field_id_of(f)) is not None}
    return StoredColumns(known, tuple(f.name for f in physical if field_id_of(f) is None))


def has_false_name(location: str, footer: pq.FileMetaData) -> bool:
    """Return whether the fingerprint in a file's name does not match the columns of the file."""
    (named,) = fingerprints_in(pa.chunked_array([[location]], pa.string())).to_pylist()
    if named is None:
        return False
    found = footer_columns(footer)
    own = {i: column for i, column in found.by_id.items() if not is_metadata_column(i)}
    return bool(found.other_names) or fingerprint_of(StoredColumns(own)) != named


@lru_cache(maxsize=256)
def _with_fingerprint(schema: Schema) -> tuple[str, StoredColumns]:
    columns = stored_columns(schema)
    return fingerprint_of(columns), columns


def describe_type(kind: Type) -> str:
    """Render a type with the ids and names of all nested fields."""
    match kind:
        case StructType(fields):
            return _describe_struct((f.field_id, f.name, describe_type(f.type)) for f in fields)
        case ListType():
            return f"list<{_describe_inner(kind.element)}>"
        case MapType():
            return f"map<{_describe_inner(kind.key)},{_describe_inner(kind.value)}>"
        case _:
            return str(kind)


def _describe_inner(field: NestedField) -> str:
    return f"{field.field_id}:{describe_type(field.type)}"


def _describe_struct(fields: Iterable[tuple[int | None, str, str]]) -> str:
    return f"struct<{','.join(f'{field_id}:{name!r}:{kind}' for field_id, name, kind in sorted(fields, key=str))}>"


def _describe_stored(kind: pa.DataType, columns: Iterator[Any]) -> str:
    """Render a type of a file's Arrow schema; its primitive columns are taken in file order."""
    if isinstance(kind, pa.BaseExtensionType):
        kind = kind.storage_type
    if pa.types.is_struct(kind):
        inner = [kind.field(at) for at in range(kind.num_fields)]
        return _describe_struct([(field_id_of(f), f.name, _describe_stored(f.type, columns)) for f in inner])
    if pa.types.is_map(kind):
        key, value = (_describe_stored_inner(f, columns) for f in (kind.key_field, kind.item_field))
        return f"map<{key},{value}>"
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return f"list<{_describe_stored_inner(kind.value_field, columns)}>"
    return _describe_column(next(columns))


def _describe_stored_inner(field: pa.Field, columns: Iterator[Any]) -> str:
    return f"{field_id_of(field)}:{_describe_stored(field.type, columns)}"


def _describe_column(column: Any) -> str:
    """Render the type if it is stored as in the spec, else its physical type. (spec: Appendix A, Parquet)"""
    physical, logical = column.physical_type, column.logical_type.to_json()
    for (stored_as, says), kind in _STORED.items():
        if physical == stored_as and logical.startswith(says):
            return kind(column)
    return f"{physical} {logical}"


def _word(word: str) -> Callable[[Any], str]:
    return lambda _: word


def _decimal(column: Any) -> str:
    return str(DecimalType(column.precision, column.scale))


def _timestamp(zoned: str) -> str:
    return f'{{"Type":"Timestamp","isAdjustedToUTC":{zoned},"timeUnit":'


_NONE, _DECIMAL = '{"Type":"None"', '{"Type":"Decimal"'
# By physical type, and the prefix of the logical type.
_STORED: dict[tuple[str, str], Callable[[Any], str]] = {
    ("BOOLEAN", _NONE): _word("boolean"),
    ("INT32", _NONE): _word("int"),
    ("INT64", _NONE): _word("long"),
    ("FLOAT", _NONE): _word("float"),
    ("DOUBLE", _NONE): _word("double"),
    ("BYTE_ARRAY", _NONE): _word("binary"),
    ("BYTE_ARRAY", '{"Type":"String"'): _word("string"),
    ("FIXED_LEN_BYTE_ARRAY", _NONE): lambda column: str(FixedType(column.length)),
    ("FIXED_LEN_BYTE_ARRAY", '{"Type":"UUID"'): _word("uuid"),
    ("INT32", _DECIMAL): _decimal,
    ("INT64", _DECIMAL): _decimal,
    ("FIXED_LEN_BYTE_ARRAY", _DECIMAL): _decimal,
    ("INT32", '{"Type":"Date"'): _word("date"),
    ("INT64", f'{_timestamp("true")}"microseconds"'): _word("timestamptz"),
    ("INT64", f'{_timestamp("false")}"microseconds"'): _word("timestamp"),
    ("INT64", f'{_timestamp("true")}"nanoseconds"'): _word("timestamptz_ns"),
    ("INT64", f'{_timestamp("false")}"nanoseconds"'): _word("timestamp_ns"),
    ("INT64", '{"Type":"Time","isAdjustedToUTC":false,"timeUnit":"microseconds"'): _word("time"),
}
