"""Rewrite position deletes: many small delete files become few, and what deletes nothing is dropped. No row changes.

    plan -> groups of data files -> engine: MergePositions -> one commit

No data file is read. What another writer changes first is left out, and planned again on the new version; others do not
fail for it. The new deletes have the newest data sequence number of those that they replace, so that they apply to the
same data files.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from icefield.commit.actions.rewrite_deletes import RewriteDeletes
from icefield.commit.snapshot.manifests import AddedFiles
from icefield.commit.validate.references import remove_unreferenced
from icefield.compaction.delete_plan import DeletePlan, DeleteRules, plan_deletes
from icefield.compaction.delete_result import DeleteRewriteResult
from icefield.compaction.options import MOST_ROUNDS
from icefield.dml.convert_deletes import convert_equality_deletes
from icefield.dml.verbs import Verb
from icefield.dml.write import TableWrite
from icefield.engine.file_works import MergePositions, delete_destination
from icefield.engine.local import local_name
from icefield.errors import ConcurrentChange
from icefield.expr.bind.bound import TRUE
from icefield.model.snapshot import Snapshot
from icefield.parquet.write.delete_files import delete_locations
from icefield.plan.plan import ScanPlan
from icefield.properties.compaction import COMPACTION_MIN_INPUT_FILES
from icefield.properties.table import BY_PARTITION, DELETE_GRANULARITY

REWRITE_DELETES = Verb("rewrite deletes", None)


@dataclass
class DeleteRewrite:
    """A rewrite of deletes in progress. begin: starts a change on the newest version.

    where: a filter on rows; the deletes of data files that may hold matching ones are looked at. convert_equality: also
    convert equality deletes, first. rewrites_shared: rewrite all delete files that name no single data file.
    """

    begin: Callable[[], TableWrite]
    where: object = None
    convert_equality: bool = False
    rewrites_shared: bool = False
    _snapshots: list[Snapshot] = field(default_factory=list)
    _engine: str | None = None

    def dry_run(self) -> DeleteRewriteResult:
        """Return what would be done."""
        _, plan = self._plan(self.begin())
        return DeleteRewriteResult(plan, is_dry_run=True, convert_equality=self.convert_equality)

    def run(self) -> DeleteRewriteResult:
        """Rewrite what is worth it, and return what was done."""
        first: DeletePlan | None = None
        if self.convert_equality:
            write = self.begin()
            first = self._plan(write)[1]
            if (converted := convert_equality_deletes(write, self.where)) is not None:
                self._snapshots.append(converted)
                self._engine = converted.engine
        left_out = 0
        for _ in range(MOST_ROUNDS):
            write = self.begin()
            scan, plan = self._plan(write)
            first = first or plan
            left_out = 0 if plan.is_empty else self._rewrite(write, scan, plan)
            if not left_out:
                break
        assert first is not None
        return DeleteRewriteResult(
            first,
            convert_equality=self.convert_equality,
            engine=self._engine,
            snapshots=tuple(self._snapshots),
            files_left_out=left_out,
        )

    def _plan(self, write: TableWrite) -> tuple[ScanPlan, DeletePlan]:
        scan = write.plan_bound(TRUE)
        if scan.deletes is None:
            return scan, DeletePlan()
        rules = DeleteRules(
            write.base.has_row_ids,
            DELETE_GRANULARITY.read(write.base.properties) == BY_PARTITION,
            COMPACTION_MIN_INPUT_FILES.read(write.base.properties),
            None if self.where is None else write.plan(self.where).files.paths,
            self.rewrites_shared,
        )
        tasks = list(scan.tasks(scan.files.filter(scan.files.delete_keys.is_valid())))
        return scan, plan_deletes(list(scan.deletes.listed), tasks, scan.files.paths, rules)

    def _rewrite(self, write: TableWrite, scan: ScanPlan, plan: DeletePlan) -> int:
        """Rewrite the deletes of a plan in one commit; return how many data files were left out."""
        settings, has_vectors = write.delete_plan(), write.base.has_row_ids
        engine = write.engine(plan.bytes_to_rewrite)
        self._engine = str(write.uses[-1])
        done = write.run(engine, MergePositions(settings, has_vectors), plan.groups)
        deletes = [entry for each in done for entry in each.entries]
        action = RewriteDeletes(
            files=AddedFiles(write.no_files, write.shape),
            read_set=write.read_set(scan, REWRITE_DELETES),
            target=write.target,
            replaced=plan.replaced,
            deletes=deletes,
            has_vectors=has_vectors,
            place=delete_destination(settings, local_name()),
            sequence_number=plan.sequence_number,
        )
        try:
            made = write.commit(lambda: action, write.no_files, delete_locations(deletes), is_optional=True)
        except ConcurrentChange:  # the version that was read is gone
            return sum(map(len, plan.groups))
        if made is not None and made.snapshot_id == action.snapshot_id:
            self._snapshots.append(made)
        else:
            remove_unreferenced(write.reading, delete_locations(deletes), write.head.load().metadata, write.base)
        return len(action.left_out)
