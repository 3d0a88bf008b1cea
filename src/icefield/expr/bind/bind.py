"""Bind a filter to a schema: names become field ids, values get the column's type, NOT is pushed into the leaves.

SQL's three-valued logic is resolved here. A comparison with null is neither true nor false, so it matches nothing, and
under NOT it matches nothing either; that is why negation must be pushed down before null is treated as false.
Raises InvalidFilter.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable
from typing import Any

from icefield.deferred import deferred_imports
from icefield.errors import InvalidFilter, InvalidInput
from icefield.expr.bind import bound
from icefield.expr.bind.bound import FALSE, TRUE, Bound, Compare, Reference, all_of, any_of, none_of, one_of
from icefield.expr.bind.literals import checked_text, compare, in_common_type
from icefield.expr.parse import ast
from icefield.expr.parse.ast import Column, Literal, Operator, Predicate
from icefield.expr.parse.like import LikePattern, parse_like
from icefield.types.datatypes import (
    OPAQUE_TYPES,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    PrimitiveType,
    StringType,
    StructType,
    UnknownType,
    VariantType,
)
from icefield.types.schema import Schema

with deferred_imports(__name__):
    from icefield.expr.parse.sql import parse_filter


def bind(where: Predicate | str | None, schema: Schema) -> Bound:
    """Return the filter as a bound expression; a string is parsed as SQL, None matches every row."""
    if where is None:
        return TRUE
    predicate = parse_filter(where) if isinstance(where, str) else where
    if not isinstance(predicate, Predicate):
        raise InvalidFilter(
            f"a filter must be a string or an expression built with col(...), not a {type(where).__name__}",
            hint="Write it as \"id > 3\" or col('id') > 3",
        )
    try:
        return _bind(predicate, schema, negated=False)
    except RecursionError as error:
        raise InvalidFilter("the filter is nested too deeply") from error


class NestedColumn(InvalidFilter):
    """A filter names a struct, a list or a map, about which metadata knows nothing."""


def find_reference(column: Column, schema: Schema) -> Reference:
    """Find the column of a name: not nested, and not inside a list or map. It can be tested for null."""
    field = find_field(column, schema)
    if isinstance(field.type, StructType | ListType | MapType):
        raise NestedColumn(f"cannot filter on column {str(column)!r}: it is a {_kind(field)}", hint=_inner_hint(field))
    if field.field_id in schema.repeated_ids:
        raise InvalidFilter(f"cannot filter on column {str(column)!r}: it is inside a list or map")
    kind = UnknownType() if isinstance(field.type, VariantType) else field.type
    return Reference(field.field_id, kind, schema.paths[field.field_id])


def _find_comparable(column: Column, schema: Schema) -> Reference:
    """Find the column of a name, whose values must be comparable."""
    reference = find_reference(column, schema)
    kind = schema.by_id[reference.field_id].type
    if isinstance(kind, OPAQUE_TYPES):
        raise InvalidFilter(
            f"cannot filter on column {str(column)!r} of type {kind} except with IS NULL and IS NOT NULL",
        )
    return reference


def find_field(column: Column, schema: Schema) -> NestedField:
    """Find the column of a name: by its path, else by its dotted name as `Schema.find_field` does."""
    # By path first: if column names contain dots, two paths can have the same dotted name.
    exact = schema.ids_by_path.get(column.path)
    if exact is not None:
        return schema.by_id[exact]
    try:
        return schema.find_field(str(column))
    except InvalidInput as error:
        names = [leaf.dotted for leaf in schema.leaves if not leaf.repeated]
        near = difflib.get_close_matches(str(column), names, n=1)
        hint = f"Did you mean {near[0]!r}?" if near else error.hint
        raise InvalidFilter(error.message, hint=hint) from error


def _kind(field: NestedField) -> str:
    return type(field.type).__name__.removesuffix("Type").lower()


def _inner_hint(field: NestedField) -> str | None:
    if not isinstance(field.type, StructType) or not field.type.fields:
        return None
    return f"Name a field inside it, such as {field.name}.{field.type.fields[0].name}"


def _bind(predicate: Predicate, schema: Schema, *, negated: bool) -> Bound:
    return _BIND[type(predicate)](predicate, schema, negated=negated)


def _bind_constant(predicate: Predicate, _schema: Schema, *, negated: bool) -> Bound:
    return TRUE if isinstance(predicate, ast.AlwaysTrue) != negated else FALSE


def _bind_null(_predicate: ast.AlwaysNull, _schema: Schema, *, negated: bool) -> Bound:
    return FALSE


def _bind_not(predicate: ast.Not, schema: Schema, *, negated: bool) -> Bound:
    return _bind(predicate.part, schema, negated=not negated)


def _bind_and(predicate: ast.And, schema: Schema, *, negated: bool) -> Bound:
    parts = [_bind(part, schema, negated=negated) for part in predicate.parts]
    return any_of(*parts) if negated else all_of(*parts)


def _bind_or(predicate: ast.Or, schema: Schema, *, negated: bool) -> Bound:
    parts = [_bind(part, schema, negated=negated) for part in predicate.parts]
    return all_of(*parts) if negated else any_of(*parts)


def _bind_comparison(predicate: ast.Comparison, schema: Schema, *, negated: bool) -> Bound:
    reference = _find_comparable(predicate.column, schema)
    if predicate.value is None:
        return FALSE
    return compare(reference, predicate.operator.negated if negated else predicate.operator, predicate.value)


def _bind_null_safe(predicate: ast.NullSafeEqual, schema: Schema, *, negated: bool) -> Bound:
    if predicate.value is None:
        return _bind_is_null(ast.IsNull(predicate.column), schema, negated=negated)
    reference = _find_comparable(predicate.column, schema)
    if negated:
        return any_of(compare(reference, Operator.NE, predicate.value), bound.IsNull(reference))
    return compare(reference, Operator.EQ, predicate.value)


def _bind_in(predicate: ast.In, schema: Schema, *, negated: bool) -> Bound:
    reference = _find_comparable(predicate.column, schema)
    if not predicate.values:
        # As in Spark 4: an empty list contains nothing, not even null, so its negation is true for null too.
        return TRUE if negated else FALSE
    if negated and None in predicate.values:
        return FALSE
    values: tuple[Literal, ...] = tuple(v for v in predicate.values if v is not None)
    operator = Operator.NE if negated else Operator.EQ
    tests = [compare(reference, operator, v) for v in in_common_type(reference.type, values)]
    simple = [t.value for t in tests if isinstance(t, Compare) and t.operator is operator]
    others = [t for t in tests if not (isinstance(t, Compare) and t.operator is operator)]
    if negated:
        return all_of(none_of(reference, simple), *others)
    return any_of(one_of(reference, simple), *others)


def _bind_is_null(predicate: ast.IsNull, schema: Schema, *, negated: bool) -> Bound:
    reference = find_reference(predicate.column, schema)
    if isinstance(schema.by_id[reference.field_id].type, UnknownType):
        # Always null, and stored in no file.
        return FALSE if negated else TRUE
    return bound.NotNull(reference) if negated else bound.IsNull(reference)


def _bind_is_nan(predicate: ast.IsNaN, schema: Schema, *, negated: bool) -> Bound:
    reference = _find_comparable(predicate.column, schema)
    if isinstance(reference.type, IntegerType | LongType | DecimalType):
        return TRUE if negated else FALSE
    _check_type(reference, (FloatType, DoubleType), "isnan needs a column of numbers")
    return bound.NotNaN(reference) if negated else bound.IsNaN(reference)


def _bind_starts_with(predicate: ast.StartsWith, schema: Schema, *, negated: bool) -> Bound:
    reference = _find_comparable(predicate.column, schema)
    _check_type(reference, (StringType,), "startswith needs a string column")
    prefix = _checked(reference, lambda: checked_text(predicate.prefix))
    return _starts_with(reference, prefix, negated=negated)


def _bind_like(predicate: ast.Like, schema: Schema, *, negated: bool) -> Bound:
    reference = _find_comparable(predicate.column, schema)
    _check_type(reference, (StringType,), "LIKE needs a string column")
    pattern: LikePattern = _checked(reference, lambda: parse_like(checked_text(predicate.pattern), predicate.escape))
    if pattern.is_literal:
        return Compare(reference, Operator.NE if negated else Operator.EQ, pattern.prefix)
    if pattern.is_prefix:
        return _starts_with(reference, pattern.prefix, negated=negated)
    return bound.NotLike(reference, pattern) if negated else bound.Like(reference, pattern)


def _starts_with(reference: Reference, prefix: str, *, negated: bool) -> Bound:
    if not prefix:
        return FALSE if negated else bound.NotNull(reference)
    return bound.NotStartsWith(reference, prefix) if negated else bound.StartsWith(reference, prefix)


def _check_type(reference: Reference, wanted: tuple[type[PrimitiveType], ...], why: str) -> None:
    if not isinstance(reference.type, wanted):
        raise InvalidFilter(f"cannot filter on column {'.'.join(reference.path)!r} of type {reference.type}: {why}")


def _checked(reference: Reference, convert: Callable[[], Any]) -> Any:
    try:
        return convert()
    except ValueError as error:
        raise InvalidFilter(f"cannot filter on column {'.'.join(reference.path)!r}: {error}") from error


_BIND: dict[type[Predicate], Callable[..., Bound]] = {
    ast.AlwaysTrue: _bind_constant,
    ast.AlwaysFalse: _bind_constant,
    ast.AlwaysNull: _bind_null,
    ast.Not: _bind_not,
    ast.And: _bind_and,
    ast.Or: _bind_or,
    ast.Comparison: _bind_comparison,
    ast.NullSafeEqual: _bind_null_safe,
    ast.In: _bind_in,
    ast.IsNull: _bind_is_null,
    ast.IsNaN: _bind_is_nan,
    ast.StartsWith: _bind_starts_with,
    ast.Like: _bind_like,
}
