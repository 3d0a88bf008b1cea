"""The row-level changes of a table handle: delete, update, merge and upsert.

Raises InvalidFilter, InvalidInput, SchemaMismatch, ConcurrentChange, CommitConflict, CommitStateUnknown.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol, runtime_checkable

from icefield.arguments import check_arguments
from icefield.deferred import deferred_imports
from icefield.dml.verbs import DELETE, EQUALITY, MERGE, UPDATE, UPSERT, ChangeVerb
from icefield.engine.choose import SPARK, EngineChoice, EngineName
from icefield.errors import MOST_MOVES, ConcurrentChange, InvalidInput, RowsMoved, SourceLost
from icefield.expr.values.scope import SOURCE, TARGET
from icefield.table.upkeep import TableUpkeep

with deferred_imports(__name__):
    from icefield.commit.action import CommitTarget
    from icefield.commit.validate.idempotency_key import IdempotencyKey
    from icefield.dml.change import ChangeOptions, RowChange
    from icefield.dml.equality import upsert_by_equality
    from icefield.dml.head import TableHead
    from icefield.dml.merge import MergeRequest, merge, plan_merge, upsert_request
    from icefield.dml.result import ChangeResult
    from icefield.dml.update import MatchingRequest, change_matching, plan_matching
    from icefield.dml.write import TableWrite
    from icefield.engine.rows import given_rows, hold_table, is_spark
    from icefield.explain.explain import Explanation
    from icefield.expr.parse.ast import Predicate
    from icefield.expr.render.describe import describe
    from icefield.model.snapshot import Snapshot
    from icefield.plan.plan import ScanPlan
    from icefield.table.merge import MergeBuilder
    from icefield.table.scan import TableScan

MOST_LOSSES = 3  # of a source, as often as Spark runs a failed task again


@check_arguments
class TableChanges(TableUpkeep):
    """The part of a table handle that changes rows."""

    def delete(  # noqa: PLR0913 - all but one are keywords
        self,
        where: Predicate | str | Any,
        *,
        dry_run: bool = False,
        mode: str | None = None,
        target_name: str | None = None,
        retry_conflicts: int = 0,
        idempotency_key: IdempotencyKey | None = None,
        engine: EngineName | None = None,
    ) -> ChangeResult:
        """Delete the rows that match a filter, in one snapshot, or none if no row matches. Return what was done.

        Files in which all rows match are dropped without reading them.

        Args:
            where: A filter: SQL text, an expression built from `col`, or a Spark Column. `TRUE` for all rows.
            dry_run: Change nothing; return what would be done.
            mode: `copy-on-write` rewrites files with deleted rows, `merge-on-read` writes delete files for them, `auto`
                decides for each file. By default as the table's properties say.
            target_name: How expressions refer to the table, also inside subqueries. By default `target`.
            retry_conflicts: How often to run it again on the newest version if another commit conflicts.
            idempotency_key: As in `append`.
            engine: `local` or `spark`. By default the engine of `Lake.use`, else Spark if much data must be read and a
                Spark session is active, or if only Spark can evaluate an expression.
        """
        if where is None:
            raise InvalidInput("delete needs a filter", hint="Pass 'TRUE' to delete all rows")
        return self._change(
            DELETE,
            lambda change: change_matching(change, MatchingRequest(where, None, target_name)),
            ChangeOptions(dry_run, mode, retry_conflicts, idempotency_key, engine),
        )

    def update(  # noqa: PLR0913 - all but two are keywords
        self,
        values: Mapping[str, Any],
        where: Predicate | str | Any = None,
        *,
        dry_run: bool = False,
        mode: str | None = None,
        target_name: str | None = None,
        retry_conflicts: int = 0,
        idempotency_key: IdempotencyKey | None = None,
        engine: EngineName | None = None,
    ) -> ChangeResult:
        """Change columns of the rows that match a filter, in one snapshot, or none if no row matches.

        Return what was done. All values are computed from the old row.

        Args:
            values: The new value of each column, or of a field inside a struct (`address.city`). A string is SQL text,
                such as `qty + 1`; `lit("text")` and other Python values are literals; a Spark Column is an expression.
            where: As in `delete`. By default all rows.
            dry_run: As in `delete`.
            mode: As in `delete`.
            target_name: As in `delete`.
            retry_conflicts: As in `delete`.
            idempotency_key: As in `append`.
            engine: As in `delete`.
        """
        return self._change(
            UPDATE,
            lambda change: change_matching(change, MatchingRequest(where, values, target_name)),
            ChangeOptions(dry_run, mode, retry_conflicts, idempotency_key, engine),
        )

    def explain_change(
        self, where: Predicate | str | Any = None, *, target_name: str | None = None, engine: EngineName | None = None
    ) -> Explanation:
        """Explain which files `delete` or `update` reads for a filter, and what prunes the others. No file is read.

        The parameters are those of `delete`.
        """
        write = self._begin(None, engine=engine)
        scan = plan_matching(write, MatchingRequest(where, None, target_name))
        return self._explained(scan, str(write.engine_use(scan.partial_files.total_bytes)))

    def merge(  # noqa: PLR0913 - all but two are keywords
        self,
        source: object,
        on: Sequence[str] | str | Any,
        *,
        merge_schema: bool = False,
        mode: str | None = None,
        target_name: str = TARGET,
        source_name: str = SOURCE,
        idempotency_key: IdempotencyKey | None = None,
        engine: EngineName | None = None,
    ) -> MergeBuilder:
        """Begin a MERGE: match source rows with rows of the table, and update, delete or insert by clauses.

        Add clauses to the result, then call `execute`. A row of the table that matches more than one source row is an
        error.

        Args:
            source: A Spark DataFrame, Arrow data, or a table or scan of a lake. It is read once.
            on: The columns that must be equal, or a condition such as `target.id = source.id AND target.day > '2026'`.
            merge_schema: Add columns that only the source has, and widen narrower ones, in the same commit.
            mode: As in `delete`.
            target_name: How expressions refer to the table.
            source_name: How expressions refer to the source.
            idempotency_key: As in `append`.
            engine: `local` or `spark`. By default the engine of `Lake.use`, else Spark for a DataFrame, or if much data
                must be read and a Spark session is active, or if only Spark can evaluate an expression.
        """
        held = hold_source(source, self._head)

        def run(request: MergeRequest, dry_run: bool, retry_conflicts: int) -> ChangeResult:  # noqa: FBT001
            options = ChangeOptions(dry_run, mode, retry_conflicts, idempotency_key, engine, can_reread=is_spark(held))
            return self._change(MERGE, lambda change: merge(change, request), options)

        def explain(request: MergeRequest) -> Explanation:
            planned = plan_merge(RowChange(self._begin(None, engine=engine), MERGE, mode), request)
            return self._explained(planned.scan, str(planned.engine_use))

        request = MergeRequest(held, on, (), target_name, source_name, merges_schema=merge_schema)
        return MergeBuilder(request, run, explain)

    def upsert(  # noqa: PLR0913 - all but two are keywords
        self,
        source: object,
        on: Sequence[str] | None = None,
        *,
        merge_schema: bool = False,
        dry_run: bool = False,
        mode: str | None = None,
        retry_conflicts: int = 0,
        idempotency_key: IdempotencyKey | None = None,
        engine: EngineName | None = None,
    ) -> ChangeResult:
        """Update rows that have the key of a source row, and insert source rows whose key is new, in one snapshot.

        Args:
            source: As in `merge`, with each key at most once. Columns that it does not name keep their value in updated
                rows, and get their default in inserted ones.
            on: The key columns. By default the identifier fields of the table.
            merge_schema: As in `merge`.
            dry_run: As in `delete`.
            mode: As in `delete`, or `equality`: write equality deletes for the keys and read nothing of the table, for
                streams. The rows then need all columns, and get new row ids.
            retry_conflicts: As in `delete`.
            idempotency_key: As in `append`.
            engine: As in `merge`.
        """
        held = hold_source(source, self._head, once=mode == EQUALITY and not retry_conflicts)

        def run(change: RowChange) -> ChangeResult:
            if mode == EQUALITY:
                return upsert_by_equality(change, held, on, merges_schema=merge_schema)
            request = upsert_request(held, on, change.write.base.schema, merges_schema=merge_schema)
            return merge(change, request)

        options = ChangeOptions(dry_run, mode, retry_conflicts, idempotency_key, engine, can_reread=is_spark(held))
        return self._change(UPSERT, run, options)

    def _change(
        self, verb: ChangeVerb, run: Callable[[RowChange], ChangeResult], options: ChangeOptions
    ) -> ChangeResult:
        """Run a row-level change; again if the source is lost, if its files were rewritten concurrently, or if a commit
        conflicts and the caller wants that.
        """
        conflicts, losses, moves = options.retry_conflicts, MOST_LOSSES if options.can_reread else 0, MOST_MOVES
        if conflicts < 0:
            raise InvalidInput(f"retry_conflicts must not be negative, but is {conflicts}")
        while True:
            write = self._begin(options.idempotency_key, engine=options.engine)
            if (landed := write.landed) is not None:
                return ChangeResult(verb.name, landed.snapshot, is_repeated=True)
            try:
                done = run(RowChange(write, verb, options.mode, options.is_dry_run))
                self._kept_up(done.snapshot)
                return done
            except RowsMoved:
                if moves == 0:
                    raise
                moves -= 1
            except ConcurrentChange:
                if conflicts == 0:
                    raise
                conflicts -= 1
            except SourceLost:
                # Nothing of this run is kept, so that a source whose rows differ the second time is harmless.
                if losses == 0:
                    raise
                losses -= 1

    def _explained(self, scan: ScanPlan, engine: str) -> Explanation:
        version, columns = scan.version, tuple(f.name for f in scan.version.schema.fields)
        snapshot_id = None if version.snapshot is None else version.snapshot.snapshot_id
        return Explanation(self.name, snapshot_id, describe(scan.where), columns, scan, engine)

    def _repeat(self, rows: object, run: Callable[[], Snapshot | None]) -> Snapshot | None:
        """Run a change; again if its files were rewritten concurrently, and if the rows can be read again."""
        moves = MOST_MOVES if is_spark(rows) or hasattr(rows, "__len__") else 0
        while True:
            try:
                return self._kept_up(run())
            except RowsMoved:
                if moves == 0:
                    raise
                moves -= 1

    def _begin(
        self,
        idempotency_key: IdempotencyKey | None,
        options: Mapping[str, str] | None = None,
        engine: EngineName | None = None,
    ) -> TableWrite:
        write = TableWrite.begin(self._head, self._target(idempotency_key))
        return replace(write, options=options or {}, asked=engine)

    def _target(self, idempotency_key: IdempotencyKey | None = None) -> CommitTarget:
        return CommitTarget(self._ref, idempotency_key, self._notes)


@runtime_checkable
class _HasScan(Protocol):
    def scan(self) -> TableScan: ...


def hold_source(source: object, head: TableHead, *, once: bool = False) -> object:
    """Return source rows that can be read again: a stream of Arrow data can be opened only once.

    once: they are read only once, so that a stream need not be held in memory.

    A table is read at its current version: as Arrow data, or as a DataFrame if its rows are many and Spark can read
    them.
    """
    if is_spark(source):  # over Spark Connect a DataFrame has every attribute: it takes them for columns
        return source
    scan = source.scan() if isinstance(source, _HasScan) else given_rows(source, lambda: head.load().metadata.schema)
    if not isinstance(scan, TableScan):
        return scan if once else hold_table(scan)
    size = sum(scan.files()["file_size_in_bytes"].to_pylist())
    use = EngineChoice(head.sessions).use(size, head.backend.store)
    return scan.to_spark(head.sessions.session) if use.name == SPARK else scan.to_arrow().read_all()
