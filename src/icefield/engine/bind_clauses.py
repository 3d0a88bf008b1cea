"""Bind the clauses of a change to the columns of the table and of the source.

Raises NeedsSpark for an expression that only Spark evaluates, and SchemaMismatch for a column of the source that does
not fit the column that it is assigned to.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace

import pyarrow as pa

from icefield.engine.change import Assignment, Clause, SourceColumn, When
from icefield.engine.row_values import BoundClause, Column, FieldOfSource, RowExpression, Rows, StructFields
from icefield.engine.rows import is_spark
from icefield.errors import IcefieldError, NeedsSpark
from icefield.expr.query.subqueries import has_subquery
from icefield.expr.values import scope
from icefield.expr.values.assign import bind_assignment
from icefield.expr.values.bind import parse_condition
from icefield.expr.values.scope import Moment, Scope
from icefield.expr.values.value import Value
from icefield.parquet.write.conform import check_schema, conform_column
from icefield.types.datatypes import NestedField, StructType
from icefield.types.metadata_columns import is_metadata_column
from icefield.types.schema import Schema


@dataclass(frozen=True)
class ClauseBinder:
    """The columns that clauses may name, and the time that they see.

    stored: the schema of new data files. incoming: None without a source.
    """

    schema: Schema
    stored: Schema
    target: str
    source: str = ""
    incoming: Schema | None = None
    moment: Moment | None = None

    def bind(self, clauses: Iterable[Clause], when: When) -> tuple[BoundClause, ...]:
        """Bind the clauses of a kind."""
        return tuple(self._bind(clause) for clause in clauses if clause.when is when)

    def condition(self, condition: object, when: When) -> RowExpression | None:
        """Bind a condition over the rows that a clause is for; None if there is none."""
        if condition is None:
            return None
        with _saying(condition):
            _refuse_spark_only(condition)
            return self._expression(condition, parse_condition(condition, self._scope(when)))

    def _bind(self, clause: Clause) -> BoundClause:
        values = {assignment.path: self._value(assignment, clause.when) for assignment in clause.assignments}
        fields = tuple(f for f in self.stored.fields if not is_metadata_column(f.field_id))
        condition = self.condition(clause.condition, clause.when)
        return BoundClause(clause, fields, self.target, condition, _nested(values))

    def _value(self, assignment: Assignment, when: When) -> RowExpression:
        wanted = field_at(self.schema, assignment.path)
        if isinstance(assignment.value, SourceColumn):
            assert self.incoming is not None
            given = field_at(self.incoming, assignment.value.path)
            check_schema(Schema((replace(given, name=wanted.name),)), Schema((wanted,)), is_partial=True)
            return FieldOfSource(self.source, assignment.value.path)
        with _saying(assignment.value):
            _refuse_spark_only(assignment.value)
            value = bind_assignment(assignment.value, wanted, self._scope(when), ".".join(assignment.path))
        return self._expression(assignment.value, value)

    def _expression(self, written: object, value: Value) -> "ValueOfRow":
        text = written if isinstance(written, str) else None
        return ValueOfRow(value, self.source, self.incoming.fields if self.incoming else (), text)

    def _scope(self, when: When) -> Scope:
        """Return the sides that an expression may use."""
        target = scope.Side(self.target, self.schema)
        if self.incoming is None:
            return Scope((target,), moment=self.moment)
        source = scope.Side(self.source, self.incoming)
        match when:
            case When.MATCHED:
                return Scope((target, source), moment=self.moment)
            case When.NOT_MATCHED:
                return Scope((source,), hidden=(self.target,), moment=self.moment)
            case When.NOT_MATCHED_BY_SOURCE:
                return Scope((target,), hidden=(self.source,), moment=self.moment)


@dataclass(frozen=True)
class ValueOfRow:
    """An SQL expression. source: the name of the source's side, and incoming: its columns. text: as it was written."""

    value: Value
    source: str
    incoming: tuple[NestedField, ...]
    text: str | None = None

    @property
    def columns(self) -> frozenset[Column]:
        return frozenset(Column(reference.side, reference.path[0]) for reference in self.value.references)

    def evaluate(self, rows: Rows) -> pa.Array:
        batches = rows.batches(self.columns)
        if self.source in batches:
            batches[self.source] = self._conformed(batches[self.source])
        with _saying(self.text):
            return self.value.evaluate(batches, rows.count)

    def _conformed(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return source rows with the types of expressions: a time that loses its nanoseconds is an error."""
        named = set(batch.schema.names)
        fields = [f for f in self.incoming if f.name in named]
        return pa.RecordBatch.from_arrays(
            [conform_column(batch.column(f.name), f, batch) for f in fields], names=[f.name for f in fields]
        )


@contextmanager
def _saying(expression: object) -> Iterator[None]:
    """Let errors that are raised in a block say which expression they are about."""
    try:
        yield
    except IcefieldError as error:
        if error.expression is None and isinstance(expression, str):
            error.expression = expression
        raise


def _nested(values: Mapping[tuple[str, ...], RowExpression]) -> dict[str, RowExpression | StructFields]:
    """Return values by column, with those of fields inside structs together."""
    found: dict[str, RowExpression | StructFields] = {}
    for name in dict.fromkeys(path[0] for path in values):
        inner = {path[1:]: value for path, value in values.items() if path[0] == name}
        found[name] = inner[()] if () in inner else StructFields(_nested(inner), _copied_struct(inner))
    return found


def _copied_struct(values: Mapping[tuple[str, ...], RowExpression]) -> FieldOfSource | None:
    """Return the struct of the source from which all values are taken, field by field."""
    parents = {
        replace(value, path=value.path[: -len(path)]) if isinstance(value, FieldOfSource) else None
        for path, value in values.items()
    }
    (parent,) = parents if len(parents) == 1 else (None,)
    return parent if parent is not None and parent.path else None


def _refuse_spark_only(expression: object) -> None:
    if is_spark(expression):
        raise NeedsSpark("a Column of Spark")
    if has_subquery(expression):
        raise NeedsSpark("a subquery")


def find_spark_only(binder: ClauseBinder, clauses: Iterable[Clause], condition: object | None = None) -> str | None:
    """Return a part of clauses, or of a condition on pairs, that only Spark can evaluate; None if there is none."""
    held = tuple(clauses)
    try:
        binder.condition(condition, When.MATCHED)
        for when in When:
            binder.bind(held, when)
    except NeedsSpark as error:
        return error.part
    return None


def field_at(schema: Schema, path: tuple[str, ...]) -> NestedField:
    """Return the field at a path of exact names."""
    fields = schema.fields
    for name in path[:-1]:
        kind = next(f.type for f in fields if f.name == name)
        assert isinstance(kind, StructType)
        fields = kind.fields
    return next(f for f in fields if f.name == path[-1])


def columns_of_side(side: str, columns: Iterable[Column]) -> set[str]:
    """Return the names of the columns of one side."""
    return {column.name for column in columns if column.side == side}
