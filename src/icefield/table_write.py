"""How a table handle writes: rows to data files, files to an action, the action to a commit.

What was written is removed if the change certainly does not land, and stays if nobody can tell.
Raises SchemaMismatch, InvalidFilter, ConcurrentChange, CommitConflict, CommitStateUnknown.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any, Protocol

import pyarrow as pa

from icefield.ambient import Ambient
from icefield.commit.action import Action, Target, Workshop
from icefield.commit.append import AppendFiles
from icefield.commit.attempt import begin_attempt
from icefield.commit.evolve import Draft, EvolveTable, Step
from icefield.commit.files import files_at, paths_of
from icefield.commit.footing import Footing, PartitionSet, find_origin
from icefield.commit.loop import OwnFiles, propose_all
from icefield.commit.manifests import ManifestShape, NewFiles
from icefield.commit.overwrite import OverwriteFiles
from icefield.commit.positions import DeleteWriter
from icefield.commit.references import remove_quietly, remove_unreferenced
from icefield.commit.token import Landed, check_token, find_landed
from icefield.errors import ConcurrentChange, IcefieldError, InvalidInput, NotFound, SchemaMismatch
from icefield.expr.ast import Predicate
from icefield.expr.bound import TRUE, Bound, columns_of
from icefield.expr.residual import residual
from icefield.model.metadata import TableMetadata
from icefield.model.snapshot import Snapshot
from icefield.parquet.conform import check_arrow_schema, news_of
from icefield.parquet.delete_files import DeletePlace
from icefield.parquet.read_ahead import read_ahead
from icefield.parquet.row_check import RowCheck
from icefield.parquet.text_check import check_text
from icefield.parquet.write import DataWriter, WritePlan, plan_write
from icefield.properties import OVERWRITE_ISOLATION, SNAPSHOT, Property
from icefield.rows import arrow_batches, as_schema, bind_filter, is_spark, load_spark_engine
from icefield.scan.plan import ScanPlan, plan_scan
from icefield.scan.point import find_point
from icefield.storage.store import Store
from icefield.table_evolution import TableEvolution
from icefield.table_head import TableHead
from icefield.types.schema import Schema

LOCAL_TASK = "00000-0"


class SnapshotAction(Action, Protocol):
    """An action that brings files, and makes one snapshot."""

    @property
    def snapshot_id(self) -> int | None: ...

    def prepare(self, base: TableMetadata, workshop: Workshop) -> None: ...


@dataclass(frozen=True)
class Verb:
    """What a change is called in errors, and the property that says how isolated it is.

    isolation: None where rows that others add never matter.
    """

    name: str
    isolation: Property[str] | None


OVERWRITE = Verb("overwrite", OVERWRITE_ISOLATION)


@dataclass(frozen=True)
class TableWrite:
    """One change of a table, on the version that it begins with.

    options: go before the table's properties. before: actions that land in the same commit, made on the base already.
    """

    head: TableHead
    store: Store
    ambient: Ambient
    target: Target
    base: TableMetadata
    options: Mapping[str, str] = field(default_factory=dict)
    before: tuple[Action, ...] = ()

    @classmethod
    def begin(
        cls, head: TableHead, store: Store, ambient: Ambient, target: Target, options: Mapping[str, str] | None = None
    ) -> "TableWrite":
        """Begin a change on the newest version."""
        if target.token is not None:
            check_token(target.token)
        return cls(head, store, ambient, target, head.load().metadata, options or {})

    @property
    def landed(self) -> Landed | None:
        """What this very change made, if it was made before under its key."""
        return find_landed(self.base, self.target.ref, self.target.token)

    @property
    def shape(self) -> ManifestShape:
        """What new data files have in common."""
        return ManifestShape(self.base.schema, self.base.spec)

    def plan(self, where: Predicate | str | Any = None) -> ScanPlan:
        """Plan a read of the branch."""
        return self.plan_bound(bind_filter(where, self.base.schema))

    def plan_bound(self, where: Bound) -> ScanPlan:
        """Plan a read with a filter that is bound already."""
        return plan_scan(self.store, self.base, find_point(self.base, self.target.ref), where)

    def merging(self, rows: object) -> tuple["TableWrite", object]:
        """Return the change on a table that has the columns of rows too, as they are added in the same commit.

        The rows are returned with it: a stream can be looked at only once.
        """
        taken = rows if is_spark(rows) else pa.RecordBatchReader.from_batches(*arrow_batches(rows))
        fields = news_of(as_schema(taken), self.base.schema)
        if not fields:
            return self, taken
        union = TableEvolution(self.base)
        try:
            union.union_by_name(Schema(fields))
            evolved = propose_all([EvolveTable(union.steps)], self.base, Workshop(self.store, self.ambient))
        except InvalidInput as error:
            raise SchemaMismatch(f"cannot merge the schema of the rows: {error}", hint=error.hint) from error
        evolve = EvolveTable([*union.steps, _columns_as_written(self.base.schema, evolved.schema)])
        return replace(self, base=evolved, before=(*self.before, evolve)), taken

    def append(self, rows: object) -> Snapshot | None:
        """Add rows."""
        return self.append_files(self.write(rows))

    def append_files(self, files: pa.Table) -> Snapshot | None:
        """Add rows that were written."""
        if files.num_rows == 0:
            return None
        return self.commit(lambda: AppendFiles(files, self.base.spec, self.base.schema, self.target), files)

    def replace_matching(
        self, rows: object, where: Predicate | str | Any, verb: Verb, *, check_rows: bool = False
    ) -> Snapshot | None:
        """Replace the rows that match a filter by other rows, which must match it too if that is checked."""
        plan = self.plan(where)
        if not is_spark(rows):
            plan = self._touched(plan)
        footing, check = self.footing(plan, verb), RowCheck.of(plan.where, self.base.schema) if check_rows else None
        return self.replace_files(self.write(rows, [plan], check), footing, plan.partial_files)

    def replace_partitions(self, rows: object) -> Snapshot | None:
        """Replace all partitions that the rows belong to, by these rows."""
        plan = self.plan_by_partition()
        return self.replace_partitions_by(self.write(rows), plan)

    def plan_by_partition(self) -> ScanPlan:
        """Plan a read of the branch, all of whose files are partitioned as new ones are."""
        plan = self.plan()
        others = sorted(set(plan.files.column("spec_id").to_pylist()) - {self.base.spec.spec_id})
        if others:
            raise InvalidInput(
                f"cannot overwrite by partition: the table has files of older partition specs ({others})",
                hint="Overwrite with a filter, or compact the table first",
            )
        return plan

    def replace_partitions_by(self, files: pa.Table, plan: ScanPlan) -> Snapshot | None:
        """Replace all partitions that have rows which were written, by these rows."""
        return self.commit(lambda: self.replacing_partitions(files, plan), files)

    def replacing_partitions(self, files: pa.Table, plan: ScanPlan) -> OverwriteFiles | None:
        """Return the action that replaces all partitions which have rows that were written; None if there are none."""
        new = NewFiles(files, self.shape)
        partitions = PartitionSet(self.base.spec.spec_id, new.partitions)
        replaced = replace(plan, files=partitions.restrict(plan.files))
        return self.replacing(files, replace(self.footing(replaced, OVERWRITE), partitions=partitions))

    def replace_named(self, rows: object, locations: Iterable[str], verb: Verb) -> Snapshot | None:
        """Replace data files, all rows of them, by other rows."""
        wanted, plan = set(locations), self.plan()
        if missing := wanted - paths_of(plan.files):
            raise NotFound(f"{len(missing)} file(s) are not in the table, such as {min(missing)}")
        footing = self.footing(replace(plan, files=files_at(plan.files, wanted)), replace(verb, isolation=None))
        return self.replace_files(self.write(rows), footing)

    def replace_files(self, files: pa.Table, footing: Footing, carried: pa.Table | None = None) -> Snapshot | None:
        """Replace the files of a footing by files that were written; `carried`: those that rows were kept of."""
        return self.commit(lambda: self.replacing(files, footing, carried), files)

    def replacing(self, files: pa.Table, footing: Footing, carried: pa.Table | None = None) -> OverwriteFiles | None:
        """Return the action that replaces the files of a footing by files that were written; None to do nothing."""
        carried = footing.plan.files.slice(0, 0) if carried is None else carried
        new = NewFiles(files, self.shape)
        action = OverwriteFiles(files=new, footing=footing, carried=carried, target=self.target)
        return None if action.changes_nothing else action

    def footing(self, plan: ScanPlan, verb: Verb) -> Footing:
        """Say what a change rests on that read a plan."""
        origin = find_origin(self.head.committed(self.base), self.base, self.target.ref)
        isolation = verb.isolation.read(self.base.properties) if verb.isolation else SNAPSHOT
        return Footing(plan, self.target.ref, verb.name, isolation, origin)

    def write(self, rows: object, replaced: Sequence[ScanPlan] = (), check: RowCheck | None = None) -> pa.Table:
        """Write rows, and what is left of files that are replaced in part, to new data files.

        check: what the rows must match, but not those that are left.
        """
        moves_rows = any(plan.partial_files.num_rows for plan in replaced)
        plan = replace(self.write_plan(moves_rows=moves_rows), check=check)
        if is_spark(rows):
            return load_spark_engine().write(rows, plan, self.base, self.store, replaced)
        schema, batches = arrow_batches(rows)
        check_arrow_schema(schema, self.base.schema)
        batches = map(check_text, batches)
        batches = check.checked(batches) if check else batches
        return self.write_batches(plan, chain(batches, self._rows_that_stay(plan.schema, replaced)))

    def write_plan(self, *, moves_rows: bool) -> WritePlan:
        """Take the settings for new files under a name of their own."""
        name = self.ambient.random_uuid().hex
        return plan_write(self.base, name, moves_rows=moves_rows, options=self.options)

    def delete_writer(self, plan: WritePlan) -> DeleteWriter:
        """Return what writes delete files beside the data files of a plan."""
        return DeleteWriter(DeletePlace(plan.layout, f"{LOCAL_TASK}-{plan.write_id}"))

    def write_batches(self, plan: WritePlan, batches: Iterable[pa.RecordBatch], task: str = LOCAL_TASK) -> pa.Table:
        """Write batches to data files; nothing is left of them after an error."""
        writer = DataWriter(plan, self.store, task)
        try:
            for batch in batches:
                writer.write(batch)
            return writer.close()
        except BaseException:
            writer.abort()
            raise

    def discard(self, written: Iterable[pa.Table]) -> None:
        """Remove files that were written for a change which is not made."""
        remove_quietly(self.store, [path for files in written for path in files.column("file_path").to_pylist()])

    def commit(self, make: Callable[[], SnapshotAction | None], files: pa.Table) -> Snapshot | None:
        """Commit an action that brings files; without one, there is nothing to do."""
        is_optional = self.target.token is not None
        own = OwnFiles(files.column("file_path").to_pylist(), self.base, is_optional)
        preparing = begin_attempt(self.store)
        try:
            action = make()
            if action is None:
                return None
            action.prepare(self.base, Workshop(preparing.store, self.ambient))
        except BaseException:
            self._discard(own, preparing.written)
            raise
        metadata = self.head.commit([*self.before, action], own)
        if self.target.token is None:
            return metadata.ref_head(self.target.ref)
        if action.snapshot_id is not None and (made := metadata.snapshots.find(action.snapshot_id)) is not None:
            return made
        # Another run of the same change came first; it may have been handed the same files.
        remove_unreferenced(self.store, [*own.locations, *action.reusable_files()], metadata, self.base)
        landed = find_landed(metadata, self.target.ref, self.target.token)
        return landed.snapshot if landed else None

    def _discard(self, own: OwnFiles, written: Sequence[str]) -> None:
        """Remove what was written for a change that is not even proposed."""
        remove_quietly(self.store, written)
        try:
            now = self.head.load().metadata
        except IcefieldError:
            return
        remove_unreferenced(self.store, own.locations, now, own.since)

    def _touched(self, plan: ScanPlan) -> ScanPlan:
        """Leave files out of a plan of which no row matches: they need not be written again."""
        if plan.where == TRUE:
            return plan
        schema, partial = plan.point.schema, plan.partial_files
        hit = []
        for reader, task in read_ahead(self.store, self.base, plan.tasks(partial)):
            left = residual(plan.where, task.proven)
            judged = [schema.name_of(field_id) for field_id in columns_of(left)]
            hit.append(any(batch.num_rows for batch in reader.read(task, schema, judged, left)))
        return replace(plan, files=pa.concat_tables([plan.whole_files, partial.filter(pa.array(hit, pa.bool_()))]))

    def _rows_that_stay(self, schema: Schema, replaced: Iterable[ScanPlan]) -> Iterator[pa.RecordBatch]:
        for plan in replaced:
            for reader, task in read_ahead(self.store, self.base, plan.tasks(plan.partial_files)):
                yield from reader.read_rest(task, schema, residual(plan.where, task.proven))


def _columns_as_written(before: Schema, written: Schema) -> Step:
    """Return a step that refuses a table on which the columns of rows would get other ids than their files have."""

    def check(draft: Draft) -> None:
        added = written.by_id.keys() - before.by_id.keys()
        moved = [i for i in added if draft.schema.paths.get(i) != written.paths[i]]
        if moved or draft.schema.by_id.keys() - draft.base.schema.by_id.keys() - added:
            raise ConcurrentChange(
                "cannot merge the schema of the rows: columns of the table were changed meanwhile",
                hint="Nothing was changed; run it again",
            )

    return check
