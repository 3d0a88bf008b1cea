"""Rewrite what a table stores: position deletes, and everything that holds rows to forget.

Raises InvalidInput, InvalidFilter, CommitConflict, CommitStateUnknown, CorruptFile.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from icefield.arguments import check_arguments
from icefield.deferred import deferred_imports
from icefield.errors import InvalidInput
from icefield.table.row_changes import TableChanges
from icefield.upkeep.result import silent

with deferred_imports(__name__):
    from icefield.commit.relocate import Progress
    from icefield.compaction.delete_result import DeleteRewriteResult
    from icefield.compaction.rewrite_deletes import DeleteRewrite
    from icefield.dml.convert_deletes import convert_equality_deletes
    from icefield.dml.head import LiveHead
    from icefield.engine.choose import EngineName
    from icefield.expr.parse.ast import Predicate
    from icefield.forget.forget import Forget, ForgetRequest
    from icefield.forget.result import ForgetResult
    from icefield.forget.search import parse_terms
    from icefield.model.snapshot import Snapshot


@check_arguments
class TableRewrites(TableChanges):
    """The part of a table handle that rewrites deletes, and forgets rows."""

    def rewrite_deletes(
        self,
        where: Predicate | str | Any = None,
        *,
        convert_equality: bool = False,
        dry_run: bool = False,
        engine: EngineName | None = None,
    ) -> DeleteRewriteResult:
        """Rewrite position deletes, so that scans open fewer delete files. No row changes. Return what was done.

        In format version 2, small delete files become few, as `write.delete.granularity` says. In version 3, every data
        file with deletes gets one deletion vector, and small Puffin files become few. Deletes that apply to no data
        file are dropped. No data file is read. Other writers do not fail for it; what they change first is left out.

        Args:
            where: Rewrite only the deletes of data files that may hold rows which match this filter.
            convert_equality: Also convert equality deletes, as `convert_equality_deletes` does.
            dry_run: Change nothing; return the plan.
            engine: As in `delete`.
        """
        rewrite = DeleteRewrite(lambda: self._begin(None, engine=engine), where, convert_equality)
        return rewrite.dry_run() if dry_run else rewrite.run()

    def convert_equality_deletes(
        self, where: Predicate | str | Any = None, *, dry_run: bool = False, engine: EngineName | None = None
    ) -> Snapshot | None:
        """Replace equality deletes by position deletes or deletion vectors, for faster scans. No row changes.

        Drop deletes that apply to no data file. Return None if there is nothing to do.

        Args:
            where: Convert only the deletes of files that may hold rows which match this filter.
            dry_run: Change nothing; return the snapshot that would be committed.
            engine: As in `delete`.
        """
        return convert_equality_deletes(self._begin(None, engine=engine), where, is_dry_run=dry_run)

    def forget(
        self,
        where: Predicate | str | Any,
        *,
        search: Sequence[str | bytes] = (),
        drop_tags: bool = False,
        dry_run: bool = False,
        progress: Progress = silent,
        engine: EngineName | None = None,
    ) -> ForgetResult:
        """Delete the rows that match a filter for good: on every branch, from every file, snapshot and statistic.

        Files that hold the rows are rewritten without them, also where they were deleted before. Snapshots that lead to
        the old files are removed, and the files are deleted when the grace period is over and no lease holds them. Then
        all files below the table's directories are searched. Call it again until `is_finished`: each call continues.

        Args:
            where: A filter, as in `delete`.
            search: Text or bytes that only the rows have, such as a name, to search all files for.
            drop_tags: Drop tags that lead to the rows. Without it they are refused, and nothing is changed.
            dry_run: Change nothing; return what would be done.
            progress: Called with each file that is deleted.
            engine: As in `delete`.
        """
        if where is None:
            raise InvalidInput("forget needs a filter", hint="Pass 'TRUE' to forget all rows")
        if not isinstance(self._head, LiveHead):
            raise InvalidInput("rows are not forgotten in a transaction", hint="Use a handle of the lake")
        request = ForgetRequest(where, parse_terms(search), drop_tags, engine)
        forget = Forget(self._head, request, lambda branch: TableRewrites(self._head, branch), progress)
        return forget.dry_run() if dry_run else forget.run()
