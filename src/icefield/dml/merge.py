"""MERGE and upsert: source rows matched with rows of the table, in one snapshot.

source    rows, read once, and their keys
plan      only files that can hold a row with one of the keys, and rows that the clauses' conditions allow
engine    matched rows -> new rows and positions; other source rows -> new rows
commit    keys that were looked for count as read, so that two merges cannot both insert one
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from icefield.commit.validate.read_set import ReadSet
from icefield.dml.change import RowChange
from icefield.dml.clauses import ClauseRequest, Sides
from icefield.dml.result import ChangeResult
from icefield.dml.subqueries import refuse_subqueries_of_merge, resolve_subqueries
from icefield.dml.write import TableWrite
from icefield.engine.bind_clauses import ClauseBinder, find_spark_only
from icefield.engine.change import ChangePlan, Effect, Merge, MergeSource, SourceKeys, When
from icefield.engine.engine import EngineUse
from icefield.engine.keys import identifier_columns, key_reference
from icefield.engine.rows import is_spark
from icefield.errors import InvalidInput
from icefield.expr.bind.bound import FALSE, TRUE, Bound, all_of, any_of
from icefield.expr.values.scope import SOURCE, TARGET
from icefield.parquet.write.conform import check_schema
from icefield.plan.plan import ScanPlan
from icefield.properties.table import SERIALIZABLE
from icefield.types.schema import Schema


@dataclass(frozen=True)
class MergeRequest:
    """A MERGE as the caller wrote it.

    on: columns that both sides have, or a condition in SQL or as a Spark Column. is_upsert: columns that the source
    lacks keep their values, and its keys must be unique. merges_schema: add columns that only the source has.
    """

    source: object
    on: object
    clauses: tuple[ClauseRequest, ...] = ()
    target_name: str = TARGET
    source_name: str = SOURCE
    is_upsert: bool = False
    merges_schema: bool = False


@dataclass(frozen=True)
class PlannedMerge:
    """A MERGE whose source was read and whose files were planned. needs_spark: what only Spark can evaluate."""

    write: TableWrite
    source: MergeSource
    merge: Merge
    keys: SourceKeys
    scan: ScanPlan
    needs_spark: str | None

    @property
    def engine_use(self) -> EngineUse:
        """The engine that runs it."""
        return self.write.engine_use(self.scan.files.total_bytes, self.source.rows, self.needs_spark)


def upsert_request(source: object, on: Sequence[str] | None, schema: Schema, *, merges_schema: bool) -> MergeRequest:
    """Return the MERGE of an upsert. on: by default the identifier fields."""
    clauses = (
        ClauseRequest(When.MATCHED, Effect.UPDATE),
        ClauseRequest(When.NOT_MATCHED, Effect.INSERT),
    )
    if isinstance(on, str):
        raise InvalidInput("upsert takes key columns", hint=f"Pass on=[{on!r}]")
    columns = tuple(on) if on is not None else identifier_columns(schema)
    if not columns:
        raise InvalidInput("upsert needs key columns", hint="Pass on=['id'], or set identifier fields on the table")
    return MergeRequest(source, columns, clauses, is_upsert=True, merges_schema=merges_schema)


def merge(change: RowChange, request: MergeRequest) -> ChangeResult:
    """Run a MERGE."""
    planned = plan_merge(change, request)
    change = replace(change, write=planned.write)
    scan = planned.scan
    with change.timed("rows"):
        engine = change.write.engine(scan.files.total_bytes, planned.source.rows, planned.needs_spark)
        clauses, relations = resolve_subqueries(planned.merge.clauses, change.write)
        plan = ChangePlan(scan, change.settings(clauses), relations)
        done = engine.merge(planned.source, replace(planned.merge, clauses=clauses), plan)
    may_insert = planned.merge.has(When.NOT_MATCHED)
    return change.finish(scan, done, _read_set(change, planned), may_insert=may_insert)


def plan_merge(change: RowChange, request: MergeRequest) -> PlannedMerge:
    """Read the keys of the source, and plan the files that they can be in."""
    write, rows = change.write, request.source
    if request.merges_schema:
        write, rows = write.merging(rows)
    with change.timed("source"):
        source = write.open_source(rows)
    sides = Sides(
        write.base.schema, source.incoming, request.target_name, request.source_name, is_partial=request.is_upsert
    )
    if request.is_upsert:
        check_schema(source.incoming, write.base.schema, is_partial=True)
    merged = _resolve(request, sides)
    for pair in merged.keys if request.is_upsert else ():
        key_reference(pair.target, sides.schema)  # for its errors
    with change.timed("source"):
        keys = write.source_keys(source, merged)
    index = None if keys.keys is None else keys.keys.index
    source = replace(source, row_count=keys.rows, key_index=index, fetched=keys.fetched)
    with change.timed("plan"):
        scan = write.plan_bound(_filter(merged, sides, keys))
    return PlannedMerge(
        write, source, merged, keys, scan, _find_spark_only(merged, sides, replace(change, write=write))
    )


def _find_spark_only(merged: Merge, sides: Sides, change: RowChange) -> str | None:
    if not merged.keys:
        return "a condition that compares no column of the table with one of the source"
    settings = change.settings(merged.clauses)
    names = sides.target_name, sides.source_name
    binder = ClauseBinder(sides.schema, settings.rows.schema, *names, sides.incoming, settings.moment)
    return find_spark_only(binder, merged.clauses, merged.rest)


def _resolve(request: MergeRequest, sides: Sides) -> Merge:
    names = request.target_name, request.source_name
    if "" in names or names[0].lower() == names[1].lower():
        raise InvalidInput(
            f"merge: target_name and source_name must be two different names, not {names[0]!r} and {names[1]!r}"
        )
    clauses = sides.resolve(request.clauses)
    refuse_subqueries_of_merge(request.on, clauses)
    if isinstance(request.on, str):
        keys, has_more = sides.split(request.on)
        return Merge(request.on, keys, request.on if has_more else None, clauses, *names)
    if is_spark(request.on):
        return Merge(request.on, (), None, clauses, *names)
    if not isinstance(request.on, Sequence) or not all(isinstance(name, str) for name in request.on):
        raise InvalidInput(f"merge: on takes columns or a condition, not {request.on!r}", hint="Pass on=['id']")
    return Merge(None, sides.keys(request.on), None, clauses, *names, has_unique_keys=request.is_upsert)


def _filter(merged: Merge, sides: Sides, keys: SourceKeys) -> Bound:
    """Return a filter for the rows of the table that the merge can change, or must look at before it inserts."""
    on = sides.target_filter(merged.on) if isinstance(merged.on, str) else TRUE
    matched = all_of(on, keys.where) if keys.rows else FALSE
    if not merged.has(When.NOT_MATCHED):
        # Other matched rows stay as they are; before an insert they must be found.
        matched = all_of(matched, _any_condition(merged, sides, When.MATCHED))
    return any_of(matched, _any_condition(merged, sides, When.NOT_MATCHED_BY_SOURCE))


def _any_condition(merged: Merge, sides: Sides, when: When) -> Bound:
    own = [clause.condition for clause in merged.clauses if clause.when is when]
    return any_of(*(sides.target_filter(condition) for condition in own))


def _read_set(change: RowChange, planned: PlannedMerge) -> ReadSet:
    """Return what a merge read: the keys that it looked for, or all rows that its filter matches."""
    read_set, merged = change.write.read_set(planned.scan, change.verb), planned.merge
    if merged.has(When.NOT_MATCHED_BY_SOURCE) and read_set.isolation == SERIALIZABLE:
        return read_set
    if planned.keys.keys is not None:
        return replace(read_set, keys=planned.keys.keys)
    # Too many keys to hold, or none: a row added concurrently that the filter matches counts as a conflict.
    return replace(read_set, isolation=SERIALIZABLE) if merged.has(When.NOT_MATCHED) else read_set
