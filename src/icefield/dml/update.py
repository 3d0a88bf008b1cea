"""DELETE and UPDATE of the rows that match a filter, in one snapshot.

A filter that metadata can evaluate chooses files, drops whole ones for a delete, and is evaluated with Arrow on either
engine. Of any other condition the parts that metadata can evaluate choose files, and the engine evaluates all of it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from icefield.dml.change import RowChange
from icefield.dml.clauses import Sides, resolve_assignments
from icefield.dml.result import ChangeResult
from icefield.dml.subqueries import resolve_subqueries
from icefield.dml.write import TableWrite
from icefield.engine.bind_clauses import ClauseBinder, find_spark_only
from icefield.engine.change import Changed, ChangePlan, Clause, Effect, When
from icefield.engine.rows import bind_filter, filter_text, is_spark
from icefield.errors import InvalidFilter
from icefield.expr.bind.bind import NestedColumn
from icefield.expr.bind.bound import TRUE, Bound, columns_of
from icefield.expr.parse.ast import Predicate
from icefield.expr.parse.sql import parse_filter
from icefield.model.metadata import TableMetadata
from icefield.plan.partition.values import readable_schema
from icefield.plan.plan import ScanPlan
from icefield.types.datatypes import NestedField
from icefield.types.metadata_columns import OF_LIVE_ROWS, is_metadata_column


@dataclass(frozen=True)
class RowFilter:
    """The rows that a change is for.

    bound: what metadata can evaluate. rest: the whole condition, if that is more. metadata_columns: those of `bound`.
    """

    bound: Bound
    rest: object | None = None
    metadata_columns: tuple[NestedField, ...] = ()


@dataclass(frozen=True)
class MatchingRequest:
    """A DELETE or UPDATE as the caller wrote it. values: None to delete. target_name: the table in expressions."""

    where: Predicate | str | Any
    values: Mapping[str, Any] | None = None
    target_name: str | None = None


def change_matching(change: RowChange, request: MatchingRequest) -> ChangeResult:
    """Update the rows that match a filter, or delete them if there are no values."""
    write, values = change.write, request.values
    sides = Sides.of_target(write.base.schema, request.target_name)
    rows = read_filter(request.where, sides, write.base)
    assignments = () if values is None else tuple(resolve_assignments(values, sides.schema, sides.target_name))
    clause = Clause(When.MATCHED, Effect.DELETE if values is None else Effect.UPDATE, rows.rest, assignments)
    with change.timed("plan"):
        plan = write.plan_bound(rows.bound)
    whole, read = plan.files.slice(0, 0), plan.files
    if values is None and rows.rest is None:
        whole, read = plan.whole_files, plan.partial_files
    done = Changed()
    if read.num_rows:
        with change.timed("rows"):
            settings = change.settings([clause])
            binder = ClauseBinder(sides.schema, settings.rows.schema, sides.target_name, moment=settings.moment)
            engine = write.engine(read.total_bytes, needs_spark=find_spark_only(binder, [clause]))
            (clause,), relations = resolve_subqueries([clause], write)
            scan = replace(plan, files=read)
            changed = ChangePlan(scan, settings, relations, rows.metadata_columns, sides.target_name)
            done = engine.change_matching(clause, changed)
    return change.finish(plan, done, write.read_set(plan, change.verb), whole)


def plan_matching(write: TableWrite, request: MatchingRequest) -> ScanPlan:
    """Plan the files that a DELETE or UPDATE reads or drops."""
    sides = Sides.of_target(write.base.schema, request.target_name)
    return write.plan_bound(read_filter(request.where, sides, write.base).bound)


def read_filter(where: Predicate | str | Any, sides: Sides, base: TableMetadata) -> RowFilter:
    """Read a filter. base: the table's metadata."""
    if where is None:
        return RowFilter(TRUE)
    if is_spark(where):
        try:
            where = filter_text(where)
        except InvalidFilter:
            return RowFilter(TRUE, where)
    if isinstance(where, str):
        try:
            parse_filter(where)
        except InvalidFilter:
            return RowFilter(sides.target_filter(where), where)
    try:
        return _with_metadata_columns(bind_filter(where, readable_schema(base, sides.schema)))
    except NestedColumn:
        if not isinstance(where, str):
            raise
        return RowFilter(sides.target_filter(where), where)


def _with_metadata_columns(bound: Bound) -> RowFilter:
    used = {i for i in columns_of(bound) if is_metadata_column(i)}
    if used - {f.field_id for f in OF_LIVE_ROWS}:
        names = ", ".join(f.name for f in OF_LIVE_ROWS)
        raise InvalidFilter(
            "a change cannot be filtered on _deleted or _partition",
            hint=f"Filter on columns of the table, or on {names}",
        )
    return RowFilter(bound, metadata_columns=tuple(f for f in OF_LIVE_ROWS if f.field_id in used))
