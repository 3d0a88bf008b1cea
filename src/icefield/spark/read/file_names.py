"""The names under which Spark may read the columns of files.

Spark finds columns by field id, but what it pushes into Parquet (row group statistics, page indexes, dictionaries,
Bloom filters) uses the name and the physical type of a column. A filter on a name that is another column in the file,
or on a decimal that was stored with fewer digits, loses rows. This includes filters that a user applies to a scan,
because Spark pushes them too. So a column is read under its name in the file only if the file's schema is known, and
the column has the same type there. Every other column is read under a name that no file has, and is filtered after
reading.

    file: 1 → ("x", "long"), 2 → ("d", "decimal(9, 2)")     table: 1: y long, 2: d decimal(18, 2)
      → names {1: "x"}; `d` gets a name that no file has

Nested fields are different: Spark looks for fields of a struct by name if a query needs only some.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from icefield.errors import MissingFile
from icefield.expr.render.spark_sql import is_plain_name
from icefield.model.metadata import TableMetadata
from icefield.parquet.read.stored_columns import (
    StoredColumns,
    describe_type,
    find_stored_columns,
    fingerprints_in,
    footer_columns,
)
from icefield.plan.planned_files import PlannedFiles
from icefield.plan.residuals import MOST_GROUPS
from icefield.storage.store import Store
from icefield.types.arrays import Mask
from icefield.types.datatypes import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
    TimestampNsType,
    TimestampType,
    TimestamptzNsType,
    TimestamptzType,
    TimeType,
    Type,
    UUIDType,
    children,
    walk,
)
from icefield.types.metadata_columns import is_metadata_column
from icefield.types.schema import Schema

# The row number column of Spark's reader; it is not available in a file with a column of that name.
INNER_ROW_NUMBER = "_tmp_metadata_row_index"
_METADATA = "_metadata"
# Equal values of these types have equal bytes, and Spark compares them as the format does. Floats are excluded:
# dictionaries and Bloom filters distinguish -0.0 from 0.0.
_SAFE_TYPES: tuple[type[Type], ...] = (
    BooleanType,
    IntegerType,
    LongType,
    DecimalType,
    DateType,
    TimestampType,
    TimestamptzType,
    StringType,
    BinaryType,
)
# Before pushing a value of these, Spark converts it to an old Java class, whose calendar lacks the days from 1582-10-05
# to 1582-10-14 and whose zones have other offsets before 1900.
REBASED_TYPES = (DateType, TimestamptzType)
# Spark reads these as plain integers, ignoring the unit in the file.
_UNITS_MATTER = (TimeType, TimestampNsType, TimestamptzNsType)
# For smaller files, skipping row groups saves less than reading their names costs.
LEAST_BYTES = 16 * 1024 * 1024
MOST_FOOTERS = 1_000
FEW_FOOTERS = 64
# Physical types that Spark's reader cannot read: short decimals as bytes; INT96 inside lists, maps and structs.
_BYTE_DECIMAL, _INT96 = 'BYTE_ARRAY {"Type":"Decimal"', "INT96"
_MOST_LONG_DIGITS = 18
# Inside lists, Spark's row-based reader cannot read these, however they are stored.
_REFUSED_ITEMS = (UUIDType, TimestampNsType, TimestamptzNsType)
_THREADS = 32
Names = tuple[tuple[int, str], ...]


@dataclass(frozen=True)
class Reading:
    """How Spark reads files. names: by field id, those of top-level columns that it may use.

    known: the columns whose nested fields have their names in the files. is_native: whether Spark's reader returns the
    values of the columns, and row numbers where needed.
    """

    names: Names
    known: frozenset[int]
    is_native: bool


UNKNOWN = Reading((), frozenset(), is_native=True)


@dataclass(frozen=True)
class Demands:
    """Properties of files besides their columns.

    numbers: the files whose rows Spark must number. old_times: the files that may hold dates or times before 1900.
    """

    numbers: Mask
    old_times: Mask


def group_by_names(
    store: Store, metadata: TableMetadata, schema: Schema, files: PlannedFiles, demands: Demands
) -> Iterator[tuple[Reading, PlannedFiles]]:
    """Group files, each group with the names to read columns of a schema by.

    Each group costs a scan, so there are few; the remaining files are read by names that no file has.
    """
    own = [f for f in schema.fields if not is_metadata_column(f.field_id)]
    must_know = demands.numbers | any(_depends_on_units(f.type) for f in own)
    numbers, kinds = _number_columns(store, metadata, files, must_know, few_too=any(_may_be_misread(f) for f in own))
    distinct, of_file = np.unique(numbers * 4 + demands.old_times * 2 + demands.numbers, return_inverse=True)
    readings = [
        _choose_reading(kinds[code // 4], own, numbered=bool(code % 2), has_old_times=bool(code // 2 % 2))
        for code in distinct.tolist()
    ]
    sizes = np.bincount(of_file, files.file_size_in_bytes.to_numpy(), len(readings))
    few = _make_few(readings, sizes.tolist())
    for reading in dict.fromkeys(few):
        chosen = np.array([other == reading for other in few])[of_file]
        yield reading, files.choose(chosen)


def has_refused_item(kind: Type) -> bool:
    """Return whether a type has a list with elements that only Spark's vectorised reader can read.

    Whether Spark uses it depends on session settings, which may change after the plan is made.
    """
    if isinstance(kind, ListType):
        return any(isinstance(f.type, _REFUSED_ITEMS) for _, f in walk(kind))
    return any(has_refused_item(f.type) for f in children(kind))


def _make_few(readings: Sequence[Reading], sizes: Sequence[float]) -> list[Reading]:
    """Keep the names of the few readings with the most bytes."""
    totals: Counter[Reading] = Counter()
    for reading, size in zip(readings, sizes, strict=True):
        totals[reading] += int(size)
    kept = {reading for reading, _ in totals.most_common(MOST_GROUPS)}
    return [reading if reading in kept else replace(UNKNOWN, is_native=reading.is_native) for reading in readings]


def _choose_reading(
    found: StoredColumns | None, own: Sequence[NestedField], *, numbered: bool, has_old_times: bool
) -> Reading:
    if found is None:
        return replace(UNKNOWN, is_native=not numbered and not any(_depends_on_units(f.type) for f in own))
    types = {f.field_id: describe_type(f.type) for f in own if f.field_id in found.by_id}
    other = {i for i, kind in types.items() if found.by_id[i][1] != kind}
    has_units = not any(_depends_on_units(f.type) for f in own if f.field_id in other)
    has_numbers = not numbered or INNER_ROW_NUMBER not in found.names_ignoring_case
    known = frozenset(f.field_id for f in own if f.field_id not in other and _has_plain_insides(f.type))
    safe_types = tuple(kind for kind in _SAFE_TYPES if not has_old_times or kind not in REBASED_TYPES)
    safe = (f.field_id for f in own if f.field_id in known & types.keys() and _is_safe(f.type, safe_types))
    names = ((i, found.by_id[i][0]) for i in safe)
    is_native = has_units and has_numbers and not any(_is_misread(found.by_id[i][1]) for i in types)
    return Reading(tuple(each for each in names if _is_free(each[1], found)), known, is_native)


def _may_be_misread(field: NestedField) -> bool:
    """Return whether a column may be stored in a way, outside the format, that Spark's reader cannot read."""
    inner = [f.type for _, f in walk(field.type)]
    if any(isinstance(kind, TimestamptzType | TimestampType) for kind in inner):
        return True
    decimals = (kind for kind in (field.type, *inner) if isinstance(kind, DecimalType))
    return any(kind.precision <= _MOST_LONG_DIGITS for kind in decimals)


def _is_misread(stored: str) -> bool:
    return _BYTE_DECIMAL in stored or (_INT96 in stored and not stored.startswith(_INT96))


def _is_free(name: str, found: StoredColumns) -> bool:
    """Return whether a name means one column of the file, and nothing else to Spark."""
    # Hadoop, too, substitutes ${name} in the schema that tasks get.
    if not is_plain_name(name):
        return False
    return found.names_ignoring_case[name.lower()] == 1 and name.lower() not in (_METADATA, INNER_ROW_NUMBER)


def _has_plain_insides(kind: Type) -> bool:
    """Return whether the fields of each struct have plain names that differ by more than case."""
    inner = children(kind)
    plain = {f.name.lower() for f in inner if is_plain_name(f.name)}
    return len(plain) == len(inner) and all(_has_plain_insides(f.type) for f in inner)


def _is_safe(kind: Type, safe_types: tuple[type[Type], ...]) -> bool:
    if isinstance(kind, StructType):
        return all(_is_safe(f.type, safe_types) for f in kind.fields)
    return isinstance(kind, (*safe_types, ListType, MapType))  # Spark pushes nothing into lists and maps


def _depends_on_units(kind: Type) -> bool:
    return isinstance(kind, _UNITS_MATTER) or any(isinstance(f.type, _UNITS_MATTER) for _, f in walk(kind))


def _number_columns(
    store: Store, metadata: TableMetadata, files: PlannedFiles, must_know: Mask, *, few_too: bool
) -> tuple[npt.NDArray[np.int64], list[StoredColumns | None]]:
    """Number the distinct file schemas, and return each file's number; number 0 means unknown.

    few_too: also read the footers of small files, if they are few.
    """
    kinds: list[StoredColumns | None] = [None]
    named = fingerprints_in(files.file_path).dictionary_encode()
    fingerprints = named.dictionary.to_pylist()
    known = find_stored_columns(metadata.schemas_newest_first, set(fingerprints))
    number_of = np.zeros(len(fingerprints) + 1, np.int64)
    for at, fingerprint in enumerate(fingerprints):
        if fingerprint in known:
            number_of[at] = len(kinds)
            kinds.append(known[fingerprint])
    numbers = number_of[named.indices.fill_null(len(fingerprints)).to_numpy()]
    unknown = numbers == 0
    if few_too and np.count_nonzero(unknown) <= FEW_FOOTERS:
        must_know = must_know | unknown
    indices = _worth_a_look(files, must_know, unknown)
    seen: dict[str, int] = {}
    for index, found in zip(indices, _load_footers(store, files, indices), strict=True):
        if found is not None:
            key = repr(found)
            if key not in seen:
                seen[key] = len(kinds)
                kinds.append(found)
            numbers[index] = seen[key]
    return numbers, kinds


def _worth_a_look(files: PlannedFiles, must_know: Mask, unknown: Mask) -> list[int]:
    """Return the files whose footers are to be read: those that need it first, then the largest."""
    sizes = files.file_size_in_bytes.to_numpy()
    indices = np.flatnonzero(unknown & (must_know | (sizes >= LEAST_BYTES)))
    order = np.lexsort((-sizes[indices], ~must_know[indices]))
    found: list[int] = indices[order][:MOST_FOOTERS].tolist()
    return found


def _load_footers(store: Store, files: PlannedFiles, indices: Sequence[int]) -> list[StoredColumns | None]:
    if not indices:
        return []
    locations = files.file_path.take(pa.array(indices)).to_pylist()
    with ThreadPoolExecutor(min(_THREADS, len(indices))) as pool:
        return list(pool.map(lambda location: _load_footer(store, location), locations))


def _load_footer(store: Store, location: str) -> StoredColumns | None:
    """Return the schema of a file; None if it cannot be read, which its reader will report."""
    try:
        with store.open_input(location) as source:
            return footer_columns(pq.read_metadata(source))
    except (pa.ArrowException, OSError, MissingFile):
        return None
