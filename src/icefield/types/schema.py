"""A table's schema: columns by field id, looked up by id or by dotted name.

A column's own name may contain a dot, so that two fields can have the same dotted name: the column `a.b`, and the field
b of the struct a. New schemas with such a pair are refused; in existing tables such names are written with backticks.

Raises InvalidInput for an invalid schema and for an unknown name.
"""

import dataclasses
import difflib
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import count

from icefield.errors import InvalidInput
from icefield.types.datatypes import (
    DoubleType,
    FloatType,
    ListType,
    MapType,
    NestedField,
    PrimitiveType,
    StructType,
    Type,
    UnknownType,
    children,
    walk,
    with_children,
)
from icefield.types.unknown_keys import UnknownKeys

# Ids above this are reserved for metadata columns. (spec: Reserved Field IDs)
MAX_FIELD_ID = 2147483447
MAX_DEPTH = 64
QUOTED = re.compile(r"`((?:[^`]|``)*)`")
_QUOTED_PATH = re.compile(rf"{QUOTED.pattern}(?:\.{QUOTED.pattern})*")


@dataclass(frozen=True)
class Leaf:
    """A primitive column; `repeated`: whether it is inside a list or map."""

    path: tuple[str, ...]
    field: NestedField
    type: PrimitiveType
    repeated: bool
    parents: tuple[NestedField, ...]

    @property
    def dotted(self) -> str:
        return ".".join(self.path)


@dataclass(frozen=True)
class Schema:
    """An ordered list of columns. Field ids are unique at every depth."""

    fields: tuple[NestedField, ...]
    schema_id: int = 0
    identifier_field_ids: tuple[int, ...] = ()
    unknown_keys: UnknownKeys = dataclasses.field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        _check_depth(self.struct, MAX_DEPTH)
        ids = [field.field_id for _, field in walk(self.struct)]
        if len(set(ids)) != len(ids):
            twice = sorted(i for i, uses in Counter(ids).items() if uses > 1)
            raise InvalidInput(f"duplicate field ids in the schema: {twice}")
        _check_names(self.struct, ())
        _check_unknown(self.struct)
        for field_id in self.identifier_field_ids:
            self._check_identifier(field_id)

    def __hash__(self) -> int:
        # Schemas are cache keys, looked up several times in every scan; equality compares the rest.
        return hash((self.schema_id, len(self.fields), self.fields[-1:]))

    @property
    def struct(self) -> StructType:
        return StructType(self.fields)

    @cached_property
    def by_id(self) -> dict[int, NestedField]:
        """Every field at every depth, by id."""
        return {field.field_id: field for _, field in walk(self.struct)}

    @cached_property
    def paths(self) -> dict[int, tuple[str, ...]]:
        """The path of every field, by id."""
        return {field.field_id: path for path, field in walk(self.struct)}

    @cached_property
    def ids_by_path(self) -> dict[tuple[str, ...], int]:
        """The id of every field, by path."""
        return {path: field_id for field_id, path in self.paths.items()}

    @cached_property
    def _ids_by_name(self) -> dict[str, list[int]]:
        found: dict[str, list[int]] = {}
        for field_id, path in self.paths.items():
            found.setdefault(".".join(path), []).append(field_id)
        return found

    @cached_property
    def _ids_by_lower_name(self) -> dict[str, list[int]]:
        found: dict[str, list[int]] = {}
        for name, ids in self._ids_by_name.items():
            found.setdefault(name.lower(), []).extend(ids)
        return found

    @property
    def column_names(self) -> list[str]:
        """The names of the columns for `select`, without nested fields."""
        return [self.name_of(field.field_id) for field in self.fields]

    @property
    def highest_field_id(self) -> int:
        return max(self.by_id, default=0)

    @cached_property
    def leaves(self) -> tuple[Leaf, ...]:
        """The primitive columns in schema order."""
        return tuple(_leaves(self.fields, ()))

    @cached_property
    def repeated_ids(self) -> frozenset[int]:
        """The ids of all fields inside lists and maps, where a row has no single value."""
        boxes = (f.type for f in self.by_id.values() if isinstance(f.type, ListType | MapType))
        return frozenset(field.field_id for box in boxes for _, field in walk(box))

    def find_field(self, name: str) -> NestedField:
        """Find a field by dotted name: exact first, then ignoring case if that is unambiguous."""
        ids = self._ids_by_name.get(name) or self._find_quoted(name) or self._ids_by_lower_name.get(name.lower(), [])
        if len(ids) == 1:
            return self.by_id[ids[0]]
        if ids:
            raise InvalidInput(f"column {name!r} is ambiguous: {', '.join(self.name_of(i) for i in ids)}")
        near = difflib.get_close_matches(name, self._ids_by_name, n=1)
        hint = f"Did you mean {near[0]!r}?" if near else None
        # Metadata columns can be selected, but are not suggested for a misspelled name.
        shown = ", ".join(f.name for f in self.fields if f.field_id <= MAX_FIELD_ID)
        raise InvalidInput(f"no column {name!r} (columns: {shown})", hint=hint)

    def name_of(self, field_id: int) -> str:
        """Return the dotted name with which `find_field` finds a field."""
        path = self.paths[field_id]
        name = ".".join(path)
        if len(self._ids_by_name[name]) == 1:
            return name
        return ".".join(f"`{part.replace('`', '``')}`" for part in path)

    def select(self, names: Iterable[str]) -> "Schema":
        """Return the schema of the named columns only, in the given order; nested names keep their parents."""
        chosen = [self.find_field(name) for name in names]
        wanted = {field.field_id for field in chosen}
        order: dict[int, None] = {}
        for field in chosen:
            order.setdefault(self.ids_by_path[self.paths[field.field_id][:1]])
        kept = [_prune(self.by_id[top], wanted) for top in order]
        return self.derive(f for f in kept if f is not None)

    def derive(self, fields: Iterable[NestedField]) -> "Schema":
        """Return a schema of some of these columns, whole or in part; it is not validated again."""
        derived = object.__new__(Schema)
        derived.__dict__.update(
            fields=tuple(fields), schema_id=self.schema_id, identifier_field_ids=(), unknown_keys=None
        )
        return derived

    def __str__(self) -> str:
        lines = (f"  {f.field_id}: {f.name}: {f.type}{' not null' if f.required else ''}" for f in self.fields)
        return "table {\n" + "\n".join(lines) + "\n}"

    def _find_quoted(self, name: str) -> list[int]:
        if not _QUOTED_PATH.fullmatch(name):
            return []
        path = tuple(part.replace("``", "`") for part in QUOTED.findall(name))
        return [self.ids_by_path[path]] if path in self.ids_by_path else []

    def _check_identifier(self, field_id: int) -> None:
        # (spec: Identifier Field IDs)
        field = self.by_id.get(field_id)
        if field is None:
            raise InvalidInput(f"identifier field id {field_id} is not in the schema")
        leaf = next((leaf for leaf in self.leaves if leaf.field.field_id == field_id), None)
        if leaf and leaf.repeated:
            raise InvalidInput(f"identifier field {leaf.dotted!r} is inside a list or map")
        if leaf and not all(parent.required for parent in leaf.parents):
            raise InvalidInput(f"identifier field {leaf.dotted!r} is inside an optional struct")
        if not isinstance(field.type, PrimitiveType) or isinstance(field.type, FloatType | DoubleType):
            raise InvalidInput(f"identifier field {field.name!r} cannot be of type {field.type}")
        if not field.required:
            raise InvalidInput(f"identifier field {field.name!r} must be required")


def split_name(name: str) -> tuple[str, str]:
    """Split the name of a column into that of its parent, empty for the table, and its own; backticks protect dots.

    >>> split_name("address.country"), split_name("note"), split_name("`a`.`b.c`")
    (('address', 'country'), ('', 'note'), ('`a`', 'b.c'))
    """
    if not _QUOTED_PATH.fullmatch(name):
        path, _, last = name.rpartition(".")
        return path, last
    *above, last = (found.group() for found in QUOTED.finditer(name))
    return ".".join(above), last[1:-1].replace("``", "`")


def check_dotted_names(schema: Schema) -> None:
    """Refuse a new schema in which two fields have the same dotted name: other engines could not open the table."""
    seen: dict[str, tuple[str, ...]] = {}
    for path in schema.paths.values():
        other = seen.setdefault(name := ".".join(path), path)
        if other is not path:
            raise InvalidInput(
                f"two columns share the name {name!r}: one has a dot in its own name, the other is a struct field",
                hint="Rename one of them",
            )


def assign_fresh_ids(schema: Schema, next_id: Callable[[], int] | None = None) -> Schema:
    """Renumber all fields from 1, level by level as Iceberg Java does: all columns first, then nested fields."""
    counter = iter(range(1, MAX_FIELD_ID))
    draw = next_id or (lambda: next(counter))
    numbered: dict[int, int] = {}
    fields = renumber(schema.fields, draw, numbered)
    return Schema(fields, schema.schema_id, tuple(numbered[i] for i in schema.identifier_field_ids))


def renumber(
    fields: tuple[NestedField, ...], draw: Callable[[], int], numbered: dict[int, int]
) -> tuple[NestedField, ...]:
    """Assign new ids to fields and their nested fields; `numbered` collects the new id of each old one."""
    ids = [draw() for _ in fields]
    numbered.update(zip((f.field_id for f in fields), ids, strict=True))
    return tuple(
        replace(f, field_id=i, type=with_children(f.type, renumber(children(f.type), draw, numbered)))
        for f, i in zip(fields, ids, strict=True)
    )


def _leaves(fields: Iterable[NestedField], parents: tuple[NestedField, ...]) -> Iterator[Leaf]:
    for field in fields:
        if isinstance(field.type, PrimitiveType):
            path = (*(p.name for p in parents), field.name)
            repeated = any(isinstance(p.type, ListType | MapType) for p in parents)
            yield Leaf(path, field, field.type, repeated, parents)
        else:
            yield from _leaves(children(field.type), (*parents, field))


def _prune(field: NestedField, wanted: set[int]) -> NestedField | None:
    if field.field_id in wanted:
        return field
    kept = tuple(f for f in (_prune(child, wanted) for child in children(field.type)) if f is not None)
    if not kept:
        return None
    if isinstance(field.type, StructType):
        return replace(field, type=StructType(kept))
    if isinstance(field.type, MapType):
        value = next((f for f in kept if f.name == "value"), field.type.value)
        return replace(field, type=with_children(field.type, (field.type.key, value)))
    return replace(field, type=with_children(field.type, kept))


def _check_depth(kind: Type, left: int) -> None:
    if left == 0:
        raise InvalidInput(f"the schema is nested deeper than {MAX_DEPTH} levels")
    for field in children(kind):
        _check_depth(field.type, left - 1)


def _check_unknown(struct: StructType) -> None:
    # (spec: Primitive Types)
    for path, field in walk(struct):
        if isinstance(field.type, UnknownType) and field.required:
            raise InvalidInput(f"column {'.'.join(path)!r} is of type unknown, so it cannot be required")


def _check_names(kind: Type, path: tuple[str, ...]) -> None:
    names = [field.name for field in children(kind)]
    for name in names:
        if not name:
            raise InvalidInput(f"a column under {'.'.join(path) or 'the table'} has an empty name")
    if len(set(names)) != len(names):
        twice = sorted(name for name, uses in Counter(names).items() if uses > 1)
        raise InvalidInput(f"duplicate column names in {'.'.join(path) or 'the table'}: {', '.join(twice)}")
    for field in children(kind):
        _check_names(field.type, (*path, field.name))


def numbered(fields: Iterable[NestedField]) -> Schema:
    """Return a schema of these fields with ids counted from 1."""
    ids = count(1)
    return Schema(renumber(tuple(fields), lambda: next(ids), {}))
