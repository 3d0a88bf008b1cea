"""MERGE in Python: clauses in order, then `execute`.

    table.merge(changes, on=["id"])
        .when_matched("source.op = 'delete'").delete()
        .when_matched().update({"qty": "target.qty + source.qty"})
        .when_not_matched().insert_all()
        .execute()

Nothing happens before `execute`. Every step returns a new value, so that a common beginning can be used twice.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from icefield.arguments import check_arguments
from icefield.deferred import deferred_imports
from icefield.dml.merge import MergeRequest
from icefield.dml.result import ChangeResult
from icefield.storage.store import StaysInProcess

with deferred_imports(__name__):
    from icefield.dml.clauses import ClauseRequest
    from icefield.engine.change import Effect, When
    from icefield.explain.explain import Explanation

Run = Callable[[MergeRequest, bool, int], ChangeResult]


@check_arguments
class MergeBuilder(StaysInProcess):
    """A MERGE in preparation; `Table.merge` returns one.

    Conditions and values are SQL text or Spark Columns; values may also be literals (`icefield.lit`, and Python values
    that are not strings). Columns are `target.x` and `source.x`, or just `x` if only one side has it. For each row, the
    first clause whose condition is true applies.
    """

    def __init__(self, request: MergeRequest, run: Run, explain: Callable[[MergeRequest], Explanation]) -> None:
        self._request = request
        self._run = run
        self._explain = explain

    def when_matched(self, condition: str | Any | None = None) -> ChangeClause:
        """Begin a clause for rows of the table that match a source row."""
        return ChangeClause(self, When.MATCHED, condition)

    def when_not_matched(self, condition: str | Any | None = None) -> InsertClause:
        """Begin a clause for source rows that match no row of the table."""
        return InsertClause(self, condition)

    def when_not_matched_by_source(self, condition: str | Any | None = None) -> ChangeClause:
        """Begin a clause for rows of the table that match no source row. Its condition may use the table only."""
        return ChangeClause(self, When.NOT_MATCHED_BY_SOURCE, condition)

    def execute(self, *, dry_run: bool = False, retry_conflicts: int = 0) -> ChangeResult:
        """Run the merge as one snapshot, or none if no row changes. Return what it did.

        Args:
            dry_run: Change nothing; return what would be done.
            retry_conflicts: How often to run it again on the newest version if another commit conflicts.
        """
        return self._run(self._request, dry_run, retry_conflicts)

    def explain(self) -> Explanation:
        """Explain which files of the table are read, and what prunes the others. Only the source's keys are read."""
        return self._explain(self._request)

    def _with(self, clause: ClauseRequest) -> MergeBuilder:
        request = replace(self._request, clauses=(*self._request.clauses, clause))
        return MergeBuilder(request, self._run, self._explain)


@check_arguments
@dataclass(frozen=True)
class ChangeClause:
    """A clause for rows of the table: update or delete them."""

    builder: MergeBuilder
    when: When
    condition: Any

    def update(self, values: Mapping[str, Any]) -> MergeBuilder:
        """Assign new values to columns, or to fields inside structs (`address.city`); others stay as they are."""
        return self._with(Effect.UPDATE, values)

    def update_all(self) -> MergeBuilder:
        """Assign every column of the table from the source column of the same name."""
        return self._with(Effect.UPDATE, None)

    def delete(self) -> MergeBuilder:
        """Delete the row."""
        return self._with(Effect.DELETE, None)

    def _with(self, effect: Effect, values: Mapping[str, Any] | None) -> MergeBuilder:
        return self.builder._with(ClauseRequest(self.when, effect, self.condition, values))  # noqa: SLF001 - the other half of the builder


@check_arguments
@dataclass(frozen=True)
class InsertClause:
    """A clause for source rows that match nothing: insert them."""

    builder: MergeBuilder
    condition: Any

    def insert(self, values: Mapping[str, Any]) -> MergeBuilder:
        """Insert a row with these values; other columns get their default."""
        return self._with(values)

    def insert_all(self) -> MergeBuilder:
        """Insert a row with every column of the table from the source column of the same name."""
        return self._with(None)

    def _with(self, values: Mapping[str, Any] | None) -> MergeBuilder:
        clause = ClauseRequest(When.NOT_MATCHED, Effect.INSERT, self.condition, values)
        return self.builder._with(clause)  # noqa: SLF001 - the other half of the builder
