"""Rewrite what a table stores without changing its rows: position deletes.

Raises InvalidInput, InvalidFilter, CommitConflict, CommitStateUnknown, CorruptFile.
"""

from typing import Any

from icefield.arguments import check_arguments
from icefield.compaction.delete_result import DeleteRewriteResult
from icefield.compaction.rewrite_deletes import DeleteRewrite
from icefield.engine.choose import EngineName
from icefield.expr.parse.ast import Predicate
from icefield.table.row_changes import TableChanges


@check_arguments
class TableRewrites(TableChanges):
    """The part of a table handle that rewrites deletes."""

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
