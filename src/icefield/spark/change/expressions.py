"""Expressions of users over the two sides of a change, and the new values of columns.

The frames of both sides have generated names, which no session setting confuses: columns that the engine itself refers
to are always found. For SQL text and Columns the sides also have the columns' own names, after `target.` and `source.`
"""

import datetime
import re
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name that every Spark user knows
from pyspark.sql import types as spark

from icefield.engine.change import Assignment, Clause, Effect, SourceColumn
from icefield.errors import InvalidInput, NeedsSpark, SchemaMismatch
from icefield.expr.parse.ast import Date, Lit, Time, Timestamp
from icefield.expr.parse.datetimes import from_python
from icefield.expr.render.spark_sql import spark_literal
from icefield.spark.change.store_assignment import is_stored_as_it_is, store, store_nanos, store_time
from icefield.spark.read.logical_columns import ColumnOrText
from icefield.spark.types import logical_field
from icefield.types.datatypes import (
    DateType,
    EmptyStruct,
    NestedField,
    PrimitiveType,
    StructType,
    TimestampNsType,
    TimestampType,
    TimestamptzNsType,
    TimestamptzType,
    TimeType,
    UUIDType,
)
from icefield.types.schema import Schema

Path = tuple[str, ...]
_DEFAULT = "default"
_ANSI = "spark.sql.ansi.enabled"


def as_column(expression: object) -> Column:
    """Return an expression as a Column: SQL text, a literal, or a Column."""
    match expression:
        case Column():
            return expression
        case str():
            return F.expr(expression)
        case Lit(value):
            return _literal(value)
        case _:
            raise InvalidInput(f"cannot use {expression!r} as an expression", hint="Pass SQL text, or icefield.lit(…)")


def is_mentioned(name: str, expressions: Iterable[object]) -> bool:
    """Return whether expressions may refer to a column: their text has its name. False only if they do not."""
    word = re.escape(name.replace("`", "``").lower())
    named = re.compile(rf"\b{word}\b" if name.isascii() and name.isidentifier() else word)
    return any(
        isinstance(each, Column) or (isinstance(each, str) and bool(named.search(each.lower()) or _has_star(each)))
        for each in expressions
    )


def _has_star(text: str) -> bool:
    squeezed = "".join(text.split())
    return any(found in squeezed for found in (".*", "(*", ",*"))


@dataclass(frozen=True)
class Side:
    """One side of a change.

    alias: its name in expressions. columns: the generated name of each column, by its exact name. types: those of the
    columns and copies, if they are known. copies: the same for columns that are copied, or compared as keys, in another
    type than expressions see.
    """

    alias: str
    columns: Mapping[str, str]
    types: spark.StructType | None = None
    copies: Mapping[str, str] = field(default_factory=dict)

    @property
    def generated(self) -> list[str]:
        """The generated names of all columns and copies."""
        return [*self.columns.values(), *self.copies.values()]

    def show(self, frame: DataFrame, expressions: Sequence[object]) -> DataFrame:
        """Add the columns' own names, as far as expressions may refer to them."""
        shown = [
            F.col(generated).alias(name) for name, generated in self.columns.items() if is_mentioned(name, expressions)
        ]
        return (frame.select("*", *shown) if shown else frame).alias(self.alias)

    def value(self, path: Sequence[str]) -> ColumnOrText:
        """Return a column as text if possible: each part of a Column is a call to Spark."""
        return self._name(path) if len(path) == 1 else self.column(path)

    def column(self, path: Sequence[str]) -> Column:
        """Return a column, or a field inside a struct."""
        column = F.col(self._name(path))
        for name in path[1:]:
            column = column.getField(name)
        return column

    def _name(self, path: Sequence[str]) -> str:
        is_copy = len(path) == 1 and path[0] in self.copies
        return self.copies[path[0]] if is_copy else self.columns[path[0]]

    def type_of(self, path: Sequence[str]) -> spark.DataType:
        """Return the type of a column, or of a field inside a struct."""
        assert self.types is not None
        kind: spark.DataType = self.types[self.generated.index(self._name(path))].dataType
        for name in path[1:]:
            assert isinstance(kind, spark.StructType)
            kind = kind[name].dataType
        return kind

    def only(self, names: Sequence[str]) -> "Side":
        """Return the side with some of its columns."""
        return Side(self.alias, {name: self.columns[name] for name in names})


def expressions_of(clauses: Iterable[Clause]) -> list[object]:
    """Return all expressions of users in clauses. DEFAULT is none."""
    found: list[object] = []
    for clause in clauses:
        found += [] if clause.condition is None else [clause.condition]
        found += [a.value for a in clause.assignments if isinstance(a.value, str | Column) and not _is_default(a.value)]
    return found


def check_ansi(session: SparkSession, expressions: Sequence[object]) -> None:
    """Raise NeedsSpark for expressions in a session without ANSI mode, the only one that the local engine has."""
    if expressions and str(session.conf.get(_ANSI)).strip().lower() != "true":
        raise NeedsSpark("an expression without ANSI mode")


@dataclass(frozen=True)
class NewValues:
    """The values of new rows. schema: the columns to write. target, source: None if a clause does not see that side."""

    schema: Schema
    target: Side | None
    source: Side | None

    def of(self, clause: Clause, frame: DataFrame) -> list[ColumnOrText]:
        """Return the new value of each column. frame: one with the columns of the sides, for the types of values."""
        made = [a for a in clause.assignments if isinstance(a.value, str | Column | Lit) and not _is_default(a.value)]
        shown = [as_column(a.value).alias(f"v{at}") for at, a in enumerate(made)]
        kinds = [f.dataType for f in frame.select(*shown).schema.fields] if shown else []
        types = {a.path: kind for a, kind in zip(made, kinds, strict=True)}
        given = {a.path: _Assigned(a, self._raw(a), types.get(a.path, self._given_type(a))) for a in clause.assignments}
        old = self.target if clause.effect is Effect.UPDATE else None
        return [
            self._value(f, (f.name,), given, None if old is None else old.value((f.name,))) for f in self.schema.fields
        ]

    def _given_type(self, assignment: Assignment) -> spark.DataType:
        if isinstance(assignment.value, SourceColumn):
            assert self.source is not None
            return self.source.type_of(assignment.value.path)
        return spark.NullType()

    def _raw(self, assignment: Assignment) -> ColumnOrText:
        if isinstance(assignment.value, SourceColumn):
            assert self.source is not None
            return self.source.value(assignment.value.path)
        return F.lit(None) if _is_default(assignment.value) else as_column(assignment.value)

    def _value(
        self,
        field: NestedField,
        path: Path,
        given: "Mapping[Path, _Assigned]",
        old: ColumnOrText | None,
    ) -> ColumnOrText:
        if path in given:
            own = given[path]
            if own.is_default:
                return _default(field)
            own.check_literal(field, path)
            if isinstance(field.type, TimeType):
                return store_time(column_of(own.value), own.kind, ".".join(path))
            if isinstance(field.type, TimestampNsType | TimestamptzNsType):
                zoned = isinstance(field.type, TimestamptzNsType)
                return store_nanos(column_of(own.value), own.kind, ".".join(path), zoned=zoned)
            wanted = logical_field(field).dataType
            if is_stored_as_it_is(own.kind, wanted):
                return own.value
            return store(column_of(own.value), own.kind, wanted, ".".join(path))
        inside = [own for own in given if own[: len(path)] == path]
        if not inside:
            return _default(field) if old is None else old
        assert isinstance(field.type, StructType)
        whole = None if old is None else column_of(old)
        parts = []
        for f in field.type.fields:
            inner = self._value(f, (*path, f.name), given, None if whole is None else whole.getField(f.name))
            parts.append(column_of(inner).alias(f.name))
        made = F.struct(*parts)
        parent = self._parent([given[own] for own in inside], len(path))
        if parent is None:
            return made
        # As Spark's UPDATE SET *: fields of a null struct do not make a struct of nulls. (AssignmentUtils)
        is_null = parent.isNull() if whole is None else parent.isNull() & whole.isNull()
        return F.when(~is_null, made)

    def _parent(self, inside: "Sequence[_Assigned]", depth: int) -> Column | None:
        """Return the struct of the source that all fields are taken from, if they are."""
        paths = set()
        for each in inside:
            value = each.assignment.value
            if not isinstance(value, SourceColumn) or len(value.path) != len(each.assignment.path):
                return None
            paths.add(value.path[:depth])
        assert self.source is not None
        return self.source.column(paths.pop()) if len(paths) == 1 else None


@dataclass(frozen=True)
class _Assigned:
    """An assignment, with its value as a Column, and the type of that."""

    assignment: Assignment
    value: ColumnOrText
    kind: spark.DataType

    @property
    def is_default(self) -> bool:
        return _is_default(self.assignment.value)

    def check_literal(self, field: NestedField, path: Path) -> None:
        """Refuse literals that Spark has as numbers, and that are others than those of the column."""
        if not isinstance(self.assignment.value, Lit) or (value := self.assignment.value.value) is None:
            return
        wants_nanos = isinstance(field.type, TimestampNsType | TimestamptzNsType)
        fits_time = isinstance(value, datetime.time) is isinstance(field.type, TimeType)
        if not fits_time or (wants_nanos and not isinstance(value, datetime.date)):
            raise SchemaMismatch(f"cannot assign {value!r} to column {'.'.join(path)!r} of type {field.type}")


def _is_default(value: object) -> bool:
    return isinstance(value, str) and value.strip().lower() == _DEFAULT


def null_of(kind: spark.DataType) -> ColumnOrText:
    """Return a null of a type; fields of structs may have names that text cannot hold."""
    is_plain = not isinstance(kind, spark.StructType | spark.ArrayType | spark.MapType)
    return f"CAST(NULL AS {kind.simpleString()})" if is_plain else F.lit(None).cast(kind)


def named(value: ColumnOrText, name: str) -> ColumnOrText:
    """Return a value under a plain name."""
    return f"{value} AS {name}" if isinstance(value, str) else value.alias(name)


def column_of(value: ColumnOrText) -> Column:
    """Return a Column."""
    return F.expr(value) if isinstance(value, str) else value


def _default(field: NestedField) -> ColumnOrText:
    """Return the value of a field that an insert does not assign. (spec: Default values)"""
    kind, default = logical_field(field).dataType, field.write_default
    if default is None:
        return null_of(kind)
    if isinstance(default, EmptyStruct):
        assert isinstance(field.type, StructType)
        return F.struct(*(column_of(_default(f)).alias(f.name) for f in field.type.fields))
    if isinstance(field.type, UUIDType):
        return F.lit(str(default))
    assert isinstance(field.type, PrimitiveType)
    return F.expr(spark_literal(default, field.type)).cast(kind)


def _literal(value: Any) -> Column:
    """Return a literal; dates and times do not depend on the session's time zone."""
    plain = from_python(value) if isinstance(value, datetime.date | datetime.time) else value
    match plain:
        case Date():
            return F.expr(spark_literal(plain.days, DateType()))
        case Timestamp():
            return F.expr(spark_literal(plain.micros, TimestamptzType() if plain.zoned else TimestampType()))
        case Time():
            return F.lit(plain.micros)
        case uuid.UUID():
            return F.lit(str(plain))
        case _:
            return F.lit(plain)
