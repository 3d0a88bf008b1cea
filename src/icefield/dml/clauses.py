"""The clauses of a MERGE as the caller wrote them, resolved against the columns of the table and the source.

    update_all(), insert_all()         an assignment for every column, by name
    {"QTY": "source.qty + 1"}          the exact name of the column, and SQL text
    on=["id"]                          pairs of columns that are compared by `=`

Raises InvalidInput for unknown columns, columns that are assigned twice, and clauses in an order in which one of them
never applies.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from icefield.engine.bind_clauses import field_at
from icefield.engine.change import Assignment, Clause, Effect, KeyPair, SourceColumn, When
from icefield.errors import IcefieldError, InvalidInput, NeedsSpark, SchemaMismatch
from icefield.expr.bind.bound import TRUE, Bound
from icefield.expr.parse.ast import Lit
from icefield.expr.query.subqueries import without_subqueries
from icefield.expr.render.spark_sql import quoted_path
from icefield.expr.values.conjuncts import find_column, find_equalities, side_filter
from icefield.expr.values.scope import SOURCE, TARGET, Place, Scope, Side, own_name
from icefield.parquet.write.conform import check_schema
from icefield.parquet.write.partial_rows import is_whole
from icefield.types.datatypes import (
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IntegerType,
    LongType,
    NestedField,
    PrimitiveType,
    StringType,
    StructType,
    TimestampNsType,
    TimestampType,
    TimestamptzNsType,
    TimestamptzType,
    Type,
    UUIDType,
    walk,
)
from icefield.types.evolve import can_widen
from icefield.types.schema import Schema

_NUMERIC_TYPES = (IntegerType, LongType, FloatType, DoubleType, DecimalType)
_NOT_IN_EXPRESSIONS = (UUIDType, TimestampNsType, TimestamptzNsType)


@dataclass(frozen=True)
class ClauseRequest:
    """A clause as the caller wrote it. values: None for all columns by name."""

    when: When
    effect: Effect
    condition: object | None = None
    values: Mapping[str, object] | None = None


@dataclass(frozen=True)
class Sides:
    """The columns of the table and of the source, and how expressions refer to them.

    is_partial: columns that the source lacks keep their values in updated rows.
    """

    schema: Schema
    incoming: Schema
    target_name: str = TARGET
    source_name: str = SOURCE
    is_partial: bool = False

    @classmethod
    def of_target(cls, schema: Schema, name: str | None = None) -> "Sides":
        """Return the side of a change without a source. name: by default one that no column has."""
        return cls(schema, Schema(()), own_name(schema) if name is None else name)

    def resolve(self, requests: Sequence[ClauseRequest]) -> tuple[Clause, ...]:
        """Resolve clauses."""
        if not requests:
            raise InvalidInput(
                "a merge needs at least one clause", hint="Add when_matched(), when_not_matched() or both"
            )
        _check_order(requests)
        return tuple(self._resolve(request) for request in requests)

    def keys(self, on: Sequence[str]) -> tuple[KeyPair, ...]:
        """Resolve columns that both sides have, and that are compared by `=`."""
        if not on:
            raise InvalidInput("a merge needs a condition", hint="Pass on=['id'], or a condition in SQL")
        return tuple(self._key(name) for name in on)

    def split(self, on: str) -> tuple[tuple[KeyPair, ...], bool]:
        """Return the columns that a condition compares by `=`, and whether it says more than that."""
        try:
            equalities, others = find_equalities(on, self.scope(When.MATCHED))
        except NeedsSpark:
            return (), True
        keys, has_more = list[KeyPair](), bool(others)
        for equality in equalities:
            left, right = equality.left, equality.right
            if len(left.path) == len(right.path) == 1 and converts_exactly(right.field.type, left.field.type):
                keys.append(KeyPair(left.path[0], right.path[0]))
            else:
                has_more = True
        return tuple(keys), has_more

    def target_filter(self, condition: object | None) -> Bound:
        """Return a filter that every row of the table matches for which a condition can be true."""
        if not isinstance(condition, str):
            return TRUE
        return side_filter(without_subqueries(condition), self.scope(When.MATCHED), self.target_name)

    def scope(self, when: When) -> Scope:
        """Return the columns that the expressions of a clause may use."""
        target, source = Side(self.target_name, self.schema), Side(self.source_name, self.incoming)
        match when:
            case When.MATCHED:
                return Scope((target, source))
            case When.NOT_MATCHED:
                return Scope((source,), hidden=(self.target_name,))
            case When.NOT_MATCHED_BY_SOURCE:
                return Scope((target,), hidden=(self.source_name,))

    def _key(self, name: str) -> KeyPair:
        known = self.schema.find_field(name)
        if known.field_id not in {f.field_id for f in self.schema.fields}:
            raise InvalidInput(f"{name!r} is inside a struct: on=[…] takes columns", hint="Write the condition in SQL")
        given = self._source_field(known.name)
        if given is None:
            raise InvalidInput(f"the source has no column {known.name!r}")
        if not converts_exactly(given.type, known.type) and not _is_key_of(given.type, known.type):
            raise InvalidInput(
                f"cannot compare {known.name!r} of type {known.type} with a source column of type {given.type}",
                hint="Cast the column of the source, or write the condition in SQL",
            )
        return KeyPair(known.name, given.name)

    def _resolve(self, request: ClauseRequest) -> Clause:
        if request.effect is Effect.DELETE:
            return Clause(request.when, request.effect, request.condition)
        if request.values is None:
            if request.when is When.NOT_MATCHED_BY_SOURCE:
                raise InvalidInput(
                    f"a clause '{request.when}' cannot assign all columns: there is no source row to take them from",
                    hint="Name the columns to assign",
                )
            assignments = tuple(self._all())
        else:
            written = resolve_assignments(request.values, self.schema, self.target_name)
            assignments = tuple(self._as_copy(assignment, request.when) for assignment in written)
        if request.effect is Effect.INSERT and not self.is_partial:
            self._check_insert(assignments)
        return Clause(request.when, request.effect, request.condition, assignments)

    def _as_copy(self, assignment: Assignment, when: When) -> Assignment:
        """Return an assignment of a column of the source, if expressions do not have all of its values.

        They have microseconds, and no uuids; a copy has every digit.
        """
        wanted = field_at(self.schema, assignment.path)
        is_exact = any(isinstance(f.type, _NOT_IN_EXPRESSIONS) for f in (wanted, *(f for _, f in walk(wanted.type))))
        given = self._named_column(assignment.value, when) if is_exact else None
        if given is None or not is_whole(given.field.type, wanted.type):
            return assignment
        with suppress(SchemaMismatch):
            check_schema(Schema((replace(given.field, name=wanted.name),)), Schema((replace(wanted, required=False),)))
            return replace(assignment, value=SourceColumn(given.path))
        return assignment  # the store assignment decides

    def _named_column(self, value: object, when: When) -> Place | None:
        """Return the column of the source that SQL text is the name of."""
        if not isinstance(value, str) or when is When.NOT_MATCHED_BY_SOURCE:
            return None
        try:
            place = find_column(value, self.scope(when))
        except IcefieldError:
            return None  # the engine reports it
        return place if place is not None and place.side == self.source_name else None

    def _all(self) -> Iterator[Assignment]:
        for column in self.schema.fields:
            given = self._source_field(column.name)
            if given is not None:
                yield from self._assign((column.name,), column.type, (given.name,), given.type)
            elif not self.is_partial:
                raise InvalidInput(
                    f"the source has no column {column.name!r}, which all columns include",
                    hint="Name the columns to assign, or use upsert, which keeps the others",
                )

    def _assign(
        self, path: tuple[str, ...], wanted: Type, source: tuple[str, ...], given: Type
    ) -> Iterator[Assignment]:
        """Assign a column; a struct that lacks fields is assigned field by field."""
        if isinstance(wanted, StructType) and isinstance(given, StructType):
            named = {f.name: f for f in given.fields}
            lacks = [f.name for f in wanted.fields if f.name not in named]
            if lacks and not self.is_partial:
                raise InvalidInput(
                    f"the source's {'.'.join(source)!r} has no field {lacks[0]!r}",
                    hint="Name the fields to assign, or use upsert, which keeps the others",
                )
            if any(not is_whole(named[f.name].type, f.type) for f in wanted.fields if f.name in named) or lacks:
                for inner in wanted.fields:
                    if inner.name in named:
                        more = named[inner.name]
                        yield from self._assign((*path, inner.name), inner.type, (*source, more.name), more.type)
                return
        may_not_fit = isinstance(wanted, _NUMERIC_TYPES) and isinstance(given, _NUMERIC_TYPES) and wanted != given
        if may_not_fit and not self.is_partial and not can_widen(given, wanted):
            # As an expression, because a copy refuses the type, and an expression only a number that does not fit.
            yield Assignment(path, quoted_path((self.source_name, *source)))
            return
        yield Assignment(path, SourceColumn(source))

    def _source_field(self, name: str) -> NestedField | None:
        """Find a column of the source: exact first, then ignoring case if that is unambiguous.

        A source column with the exact name of another column of the table is for that one alone.
        """
        exact = [f for f in self.incoming.fields if f.name == name]
        others = {f.name for f in self.schema.fields}
        found = exact or [f for f in self.incoming.fields if f.name.lower() == name.lower() and f.name not in others]
        if len(found) > 1:
            names = ", ".join(f.name for f in found)
            raise InvalidInput(f"column {name!r} is ambiguous in the source: {names}")
        return found[0] if found else None

    def _check_insert(self, assignments: Sequence[Assignment]) -> None:
        assigned = {assignment.path[0] for assignment in assignments}
        for column in self.schema.fields:
            if column.required and column.write_default is None and column.name not in assigned:
                raise SchemaMismatch(
                    f"an inserted row has no value for the required column {column.name!r}, which has no default",
                    hint="Assign it",
                )


def resolve_assignments(
    values: Mapping[str, object], schema: Schema, target_name: str = TARGET
) -> Iterator[Assignment]:
    """Resolve the columns to assign."""
    if not values:
        raise InvalidInput("no column is assigned", hint="Pass a dictionary of columns and their new values")
    paths: dict[tuple[str, ...], str] = {}
    for name, value in values.items():
        path = _find_path(name, schema, target_name)
        for other, known in paths.items():
            if path[: len(other)] == other or other[: len(path)] == path:
                raise InvalidInput(f"{name!r} and {known!r} assign the same column")
        paths[path] = name
        yield Assignment(path, as_expression(value))


def as_expression(value: object) -> object:
    """Return a value as engines take it: text is SQL, other Python values are literals."""
    is_other = type(value).__module__.split(".")[0] in ("builtins", "datetime", "decimal", "uuid")
    return Lit(value) if is_other and not isinstance(value, str) else value  # type: ignore[arg-type]


def converts_exactly(given: Type, wanted: Type) -> bool:
    """Return whether every value of a type is one of another type, and equal values stay equal."""
    match given, wanted:
        case IntegerType(), LongType():
            return True
        case DecimalType(), DecimalType():
            return given.scale == wanted.scale and given.precision <= wanted.precision
        case _:
            return given == wanted and isinstance(wanted, PrimitiveType)


def _is_key_of(given: Type, wanted: Type) -> bool:
    """Return whether a source column that is written to a key column finds the same keys there."""
    match given, wanted:
        case ((FixedType(16) | StringType()), UUIDType()):
            return True
        case (TimestampType(), TimestampNsType()) | (TimestamptzType(), TimestamptzNsType()):
            return True
        case _:
            return False


def _find_path(name: str, schema: Schema, target_name: str) -> tuple[str, ...]:
    field = _find_field(name, schema, target_name)
    if field.field_id in schema.repeated_ids:
        raise InvalidInput(f"cannot assign {name!r}: it is inside a list or map", hint="Assign the whole column")
    return schema.paths[field.field_id]


def _find_field(name: str, schema: Schema, target_name: str) -> NestedField:
    prefix = f"{target_name}."
    if not name.lower().startswith(prefix.lower()):
        return schema.find_field(name)
    found = []
    for each in (name, name[len(prefix) :]):
        with suppress(InvalidInput):
            found.append(schema.find_field(each))
    if len(found) > 1:
        raise InvalidInput(
            f"{name!r} may be a column of the table, or a field of its column {target_name!r}",
            hint=f"Write {name[len(prefix) :]!r} or {prefix + name!r}, or pass another target_name",
        )
    return found[0] if found else schema.find_field(name)


def _check_order(requests: Sequence[ClauseRequest]) -> None:
    for when in When:
        own = [request for request in requests if request.when is when]
        for request in own[:-1]:
            if request.condition is None:
                raise InvalidInput(
                    f"only the last clause '{when}' may have no condition: the ones after it would never apply"
                )
