"""What a reader derives from the columns of a file. Most files of a table have the same, so it is derived once.

A file's columns are identified by their ids, or else by a name mapping. From them follow the columns to decode, and the
part of a filter that can be evaluated on the file's own statistics.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import pyarrow as pa
import pyarrow.compute as pc

from icefield.codec.json.name_mapping import NameMapping
from icefield.errors import Unsupported
from icefield.expr.bind.bound import TRUE, Bound, all_of, columns_of, conjuncts
from icefield.expr.render.arrow import row_group_filter
from icefield.parquet.mapped_ids import has_ids, with_mapped_ids
from icefield.parquet.read.project import Projection, fields_by_id
from icefield.parquet.read.small_file import find_leaves
from icefield.types.arrow import arrow_type, field_id_of
from icefield.types.datatypes import NestedField, StructType, TimestampNsType, TimestamptzNsType
from icefield.types.metadata_columns import DELETED, LINEAGE, is_metadata_column
from icefield.types.schema import Schema

MOST_LAYOUTS = 64


@dataclass(frozen=True)
class WantedColumns:
    """How some columns of a schema are read from files of one layout.

    stored: the columns that files may have. names: those that this file has, by its own names. pushed: the filter for
    row groups. has_metadata: whether metadata columns are selected, and marks_deleted: whether `_deleted` is.
    needs_nanoseconds: whether INT96 timestamps must be read as nanoseconds. projection: for files without constants.
    """

    stored: Schema
    names: tuple[str, ...]
    pushed: pc.Expression | None
    has_metadata: bool
    marks_deleted: bool
    needs_nanoseconds: bool
    projection: Projection


@dataclass
class FileLayout:
    """The columns of a file with their ids."""

    physical: tuple[pa.Field, ...]
    by_id: Mapping[int, pa.Field] = field(init=False)
    _last: tuple[Schema, Bound, WantedColumns] | None = field(init=False, default=None)
    _leaves: tuple[tuple[tuple[str, ...], int], list[int]] | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        self.by_id = fields_by_id(self.physical)

    def wanted(self, schema: Schema, where: Bound) -> WantedColumns:
        """Return how the columns of a schema are read with a filter."""
        last = self._last
        if last is not None and last[0] is schema and last[1] is where:
            return last[2]
        stored = _stored_part(schema)
        made = WantedColumns(
            stored,
            tuple(self.by_id[f.field_id].name for f in stored.fields if f.field_id in self.by_id),
            _pushed_filter(where, schema, self.physical),
            any(is_metadata_column(f.field_id) for f in schema.fields),
            DELETED.field_id in schema.by_id,
            _needs_nanoseconds(schema, self.physical),
            Projection(stored, self.by_id),
        )
        self._last = schema, where, made
        return made

    def leaves(self, names: Sequence[str], count: int) -> list[int]:
        """Return the numbers of the leaf columns of some columns, in a file with so many; empty if they are unknown."""
        key = tuple(names)
        if self._leaves is None or self._leaves[0] != (key, count):
            self._leaves = (key, count), find_leaves(self.physical, key, count)
        return self._leaves[1]


class Layouts:
    """An LRU cache of the layouts of files, by their Arrow schema."""

    def __init__(self, mapping: NameMapping | None) -> None:
        self._mapping = mapping
        self._known: dict[bytes, FileLayout] = {}

    def find(self, physical: pa.Schema, location: str) -> FileLayout:
        """Return the layout of a file with these columns. Raises Unsupported if they have no ids."""
        # Not by the schema itself: in Arrow, schemas that differ only in field ids are equal.
        key = physical.serialize().to_pybytes()
        known = self._known.pop(key, None)
        if known is None:
            known = FileLayout(tuple(_with_ids(physical, self._mapping, location)))
            if len(self._known) >= MOST_LAYOUTS:
                del self._known[next(iter(self._known))]
        self._known[key] = known
        return known


def _with_ids(physical: pa.Schema, mapping: NameMapping | None, location: str) -> pa.Schema:
    if has_ids(physical):
        return physical
    if mapping is None:
        raise Unsupported(
            f"{location} has columns without field ids",
            hint="Set the table property schema.name-mapping.default to map column names to field ids",
        )
    return with_mapped_ids(physical, mapping)


@lru_cache(maxsize=64)
def _stored_part(wanted: Schema) -> Schema:
    """Return the columns that files may have: the table's own, and stored row lineage."""
    lineage = [f.field_id for f in LINEAGE]
    return wanted.derive(f for f in wanted.fields if not is_metadata_column(f.field_id) or f.field_id in lineage)


def _needs_nanoseconds(wanted: Schema, physical: Sequence[pa.Field]) -> bool:
    """Return whether a nanosecond column may be stored as INT96."""
    coarse = {field_id_of(f) for f in physical if f.type == pa.timestamp("us")}
    return any(f.field_id in coarse and isinstance(f.type, TimestampNsType | TimestamptzNsType) for f in wanted.fields)


def _pushed_filter(where: Bound, wanted: Schema, physical: Sequence[pa.Field]) -> pc.Expression | None:
    """Build the part of the filter that can be evaluated on the file's own statistics.

    Only conjuncts whose columns have exactly the table's type in the file: the rest is evaluated on projected rows.
    """
    own = [f for f in wanted.fields if not is_metadata_column(f.field_id)]
    paths = dict(_paths_with_same_type(own, physical, ()))
    judged = all_of(*(part for part in conjuncts(where) if columns_of(part) <= paths.keys()))
    return None if judged == TRUE else row_group_filter(judged, lambda reference: paths[reference.field_id])


def _paths_with_same_type(
    fields: Sequence[NestedField], physical: Sequence[pa.Field], path: tuple[str, ...]
) -> Iterator[tuple[int, tuple[str, ...]]]:
    found = {field_id_of(f): f for f in physical}
    for each in fields:
        stored = found.get(each.field_id)
        if stored is None:
            continue
        inner = (*path, stored.name)
        if isinstance(each.type, StructType):
            children = [stored.type.field(i) for i in range(stored.type.num_fields)]
            yield from _paths_with_same_type(each.type.fields, children, inner)
        elif _is_judged_by_arrow(stored.type) and stored.type == arrow_type(each.type):
            yield each.field_id, inner


def _is_judged_by_arrow(kind: pa.DataType) -> bool:
    """Return whether Arrow can compare values of a type with statistics; it cannot for its uuid type."""
    return not pa.types.is_nested(kind) and not isinstance(kind, pa.BaseExtensionType)
