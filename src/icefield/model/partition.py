"""Partition specs: how rows are grouped into files. (spec: Partitioning)

`parse_partition_by(["day(ts)", "bucket(16, id)", "region"], schema)` parses the terms that users write.
Raises InvalidInput.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence
from dataclasses import dataclass

from icefield.deferred import deferred_imports
from icefield.errors import InvalidInput
from icefield.types.datatypes import MAX_DIGITS, NestedField, PrimitiveType, StringType
from icefield.types.schema import QUOTED, Schema
from icefield.types.transforms import SIMPLE_TRANSFORMS, Bucket, Identity, Transform, Truncate, Unknown, Void

with deferred_imports(__name__):
    from icefield.types.unknown_keys import UnknownKeys

FIRST_PARTITION_FIELD_ID = 1000

_CALL = re.compile(r"\s*(\w+)\s*\((.*)\)\s*", re.DOTALL)
_COMMA = re.compile(r",(?=(?:[^`]*`[^`]*`)*[^`]*$)")  # not inside backticks
_QUOTED_PATH = re.compile(rf"(?:{QUOTED.pattern}|[^`.]+)(?:\.(?:{QUOTED.pattern}|[^`.]+))*")
_NAMED = re.compile(r"(.*\S)\s+as\s+(`(?:[^`]|``)+`|\w+)\s*", re.DOTALL | re.IGNORECASE)
_PLURALS = {"years": "year", "months": "month", "days": "day", "hours": "hour"}


@dataclass(frozen=True)
class PartitionField:
    """One field of the partition tuple; a transform of several columns has the others in `other_source_ids`."""

    source_id: int
    field_id: int
    name: str
    transform: Transform
    other_source_ids: tuple[int, ...] = ()
    unknown_keys: UnknownKeys = dataclasses.field(default=None, compare=False, repr=False)

    @property
    def source_ids(self) -> tuple[int, ...]:
        return (self.source_id, *self.other_source_ids)


@dataclass(frozen=True)
class PartitionSpec:
    """An ordered list of partition fields; empty means unpartitioned."""

    fields: tuple[PartitionField, ...] = ()
    spec_id: int = 0
    unknown_keys: UnknownKeys = dataclasses.field(default=None, compare=False, repr=False)

    def __hash__(self) -> int:
        # Specs are cache keys, looked up several times in every scan; equality compares the rest.
        return hash((self.spec_id, len(self.fields), *(field.field_id for field in self.fields[-1:])))

    @property
    def is_unpartitioned(self) -> bool:
        return all(isinstance(f.transform, Void) for f in self.fields)

    @property
    def highest_field_id(self) -> int:
        return max((f.field_id for f in self.fields), default=FIRST_PARTITION_FIELD_ID - 1)

    def source_type(self, field: PartitionField, schema: Schema) -> PrimitiveType:
        """Return the type of a partition field's source column; the column must be in the schema."""
        source = schema.by_id.get(field.source_id)
        if source is None or not isinstance(source.type, PrimitiveType):
            raise InvalidInput(f"partition field {field.name!r} has no source column with id {field.source_id}")
        return source.type

    def columns(self, schema: Schema) -> tuple[NestedField, ...]:
        """Return the partition tuple as fields with their result types, all optional."""
        return tuple(NestedField(f.field_id, f.name, self._result_type(f, schema)) for f in self.fields)

    def __str__(self) -> str:
        return "[" + ", ".join(f"{f.name}: {f.transform}({_listed(f.source_ids)})" for f in self.fields) + "]"

    def _result_type(self, field: PartitionField, schema: Schema) -> PrimitiveType:
        # The result type of an unknown transform does not depend on its sources, which may be of any type.
        source = StringType() if isinstance(field.transform, Unknown) else self.source_type(field, schema)
        return field.transform.result_type(source)


UNPARTITIONED = PartitionSpec()


def parse_partition_by(strings: Sequence[str], schema: Schema) -> PartitionSpec:
    """Build a spec from strings such as `day(ts)`, `bucket(16, id)`, `truncate(4, name)`, `region as place`."""
    if isinstance(strings, str):
        raise InvalidInput("partition_by takes a list of strings", hint=f"Write partition_by=[{strings!r}]")
    fields: list[PartitionField] = []
    for position, text in enumerate(strings):
        term, own_name = (text, None) if (text,) in schema.ids_by_path else _split_name(text)
        transform, column = parse_transform_call(term)
        source = find_source(schema, column, transform, text)
        name = own_name or transform.default_name(schema.name_of(source.field_id))
        fields.append(PartitionField(source.field_id, FIRST_PARTITION_FIELD_ID + position, name, transform))
    spec = PartitionSpec(tuple(fields))
    check_spec(spec, schema)
    return spec


def _split_name(text: str) -> tuple[str, str | None]:
    """Split off the name of a partition field, if the term has one: `bucket(16, id) as shard`."""
    found = _NAMED.fullmatch(text) if isinstance(text, str) else None
    return (text, None) if found is None else (found[1], _unquote(found[2]))


def parse_transform_call(text: str) -> tuple[Transform, str]:
    """Parse `transform(column)` or a bare column into a transform and a column name."""
    if not isinstance(text, str):
        raise InvalidInput(f"a partition or sort term must be a string, not {text!r}")
    found = _CALL.fullmatch(text)
    if found is None:
        return Identity(), _unquote(text)
    word = _PLURALS.get(found[1].lower(), found[1].lower())
    arguments = [a.strip() for a in _COMMA.split(found[2])]
    if word in SIMPLE_TRANSFORMS and len(arguments) == 1:
        return SIMPLE_TRANSFORMS[word], _unquote(arguments[0])
    if word in ("bucket", "truncate") and len(arguments) == 2:
        # Both orders are in use: bucket(16, id) in Spark, truncate(name, 4) in Trino.
        number, column = arguments if arguments[0].isdecimal() else reversed(arguments)
        if number.isdecimal() and len(number) <= MAX_DIGITS:
            make = Bucket if word == "bucket" else Truncate
            return make(int(number)), _unquote(column)
    raise InvalidInput(
        f"cannot parse the transform {text[:80]!r}",
        hint="Known: column, year(c), month(c), day(c), hour(c), bucket(n, c), truncate(w, c), void(c)",
    )


def find_source(schema: Schema, column: str, transform: Transform, text: str) -> NestedField:
    """Find the source column and check that the transform may be applied to it."""
    source = schema.find_field(column)
    leaf = next((leaf for leaf in schema.leaves if leaf.field.field_id == source.field_id), None)
    if leaf is None:
        raise InvalidInput(f"{text!r}: column {column!r} is {source.type}; only primitive columns can be used here")
    if leaf.repeated:
        raise InvalidInput(f"{text!r}: column {column!r} is inside a list or map, where a row has no single value")
    if not transform.fits(leaf.type):
        raise InvalidInput(f"{text!r}: {transform} cannot be applied to {leaf.type} column {column!r}")
    return source


def check_spec(spec: PartitionSpec, schema: Schema) -> None:
    """Refuse ambiguous partition fields."""
    names = [f.name for f in spec.fields]
    for name in names:
        if names.count(name) > 1:
            raise InvalidInput(f"two partition fields are named {name!r}")
    # In version 1 each dropped field leaves a void field, so a column may have several.
    pairs = [(f.source_ids, str(f.transform)) for f in spec.fields if not isinstance(f.transform, Void)]
    if len(set(pairs)) != len(pairs):
        raise InvalidInput("the partition spec applies the same transform to the same column twice")
    columns = {schema.name_of(field_id): field_id for field_id in schema.paths}
    for field in spec.fields:
        clash = columns.get(field.name)
        if clash and not (isinstance(field.transform, Identity | Void) and clash == field.source_id):
            raise InvalidInput(f"partition field {field.name!r} has the name of a column")


def _listed(ids: tuple[int, ...]) -> str:
    return ", ".join(map(str, ids))


def _unquote(text: str) -> str:
    """Remove the backticks from a name, or from the parts of a dotted name."""
    text = text.strip()
    return QUOTED.sub(lambda found: found[1].replace("``", "`"), text) if _QUOTED_PATH.fullmatch(text) else text
