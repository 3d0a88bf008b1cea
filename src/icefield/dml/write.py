"""The write path of a table handle: rows to data files, files to an action, the action to a commit.

Written files are removed if the commit certainly failed, and kept if its outcome is unknown.
Raises SchemaMismatch, InvalidFilter, ConcurrentChange, CommitConflict, CommitStateUnknown.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, TypeVar

import pyarrow as pa

from icefield.ambient import Ambient
from icefield.cache.reading import ReadContext
from icefield.codec.manifest.rows import DataFiles
from icefield.commit.action import Action, CommitTarget, WriteContext
from icefield.commit.actions.append import AppendFiles
from icefield.commit.actions.evolve import Draft, EvolveTable, Step
from icefield.commit.actions.overwrite import OverwriteFiles
from icefield.commit.attempt import begin_attempt
from icefield.commit.loop import OwnFiles, propose_all
from icefield.commit.open_write import OpenWrite, needs_lease
from icefield.commit.operations.tables import TableVersion
from icefield.commit.snapshot.manifests import AddedFiles, ManifestShape
from icefield.commit.validate.idempotency_key import Landed, check_idempotency_key, find_landed
from icefield.commit.validate.read_set import PartitionSet, ReadSet, find_starting_snapshot
from icefield.commit.validate.references import remove_quietly, remove_unreferenced
from icefield.dml.evolution import TableEvolution
from icefield.dml.head import LiveHead, TableHead
from icefield.dml.verbs import OVERWRITE, Verb
from icefield.engine.change import Merge, MergeSource, SourceKeys
from icefield.engine.choose import EngineChoice, EngineName
from icefield.engine.engine import EngineUse, FileWork, RowEngine
from icefield.engine.file_works import FindMatches, delete_destination
from icefield.engine.local import local_name
from icefield.engine.rows import as_schema, bind_filter, hold_rows
from icefield.errors import ConcurrentChange, IcefieldError, InvalidInput, NotFound, SchemaMismatch
from icefield.expr.bind.bound import TRUE, Bound
from icefield.expr.parse.ast import Predicate
from icefield.model.metadata import TableMetadata
from icefield.model.snapshot import Snapshot
from icefield.parquet.read.task import FileTask
from icefield.parquet.write.conform import news_of
from icefield.parquet.write.data_files import no_data_files
from icefield.parquet.write.plan import WritePlan, plan_deletes, plan_write
from icefield.parquet.write.row_check import RowCheck
from icefield.plan.plan import ScanPlan, plan_scan
from icefield.plan.planned_files import PlannedFiles
from icefield.plan.versions import resolve_version
from icefield.properties.table import SNAPSHOT
from icefield.storage.store import Store
from icefield.types.schema import Schema


class Wrote(Protocol):
    """The result of engine work that wrote files."""

    @property
    def locations(self) -> list[str]: ...


W = TypeVar("W", bound=Wrote)


class SnapshotAction(Action, Protocol):
    """An action that adds files and creates one snapshot."""

    @property
    def snapshot_id(self) -> int | None: ...

    def prepare(self, base: TableMetadata, context: WriteContext) -> None: ...


@dataclass(frozen=True)
class TableWrite:
    """One change of a table, on the version that it starts from.

    options: override the table's properties. before: actions in the same commit, already applied to the base.
    asked: the engine that the caller chose. uses: the engines that were used.
    """

    head: TableHead
    target: CommitTarget
    base: TableMetadata
    options: Mapping[str, str] = field(default_factory=dict)
    before: tuple[Action, ...] = ()
    asked: EngineName | None = None
    uses: list[EngineUse] = field(default_factory=list)
    opened: list[OpenWrite] = field(default_factory=list)

    @classmethod
    def begin(cls, head: TableHead, target: CommitTarget) -> "TableWrite":
        """Start a change on the newest version."""
        if target.idempotency_key is not None:
            check_idempotency_key(target.idempotency_key)
        base, opened = open_write(head, target.ref)
        return cls(head, target, base.metadata, opened=opened)

    @property
    def store(self) -> Store:
        """Where the table's files are."""
        return self.head.backend.store

    @property
    def reading(self) -> ReadContext:
        """What the table is planned with."""
        return self.head.backend.reading

    @property
    def ambient(self) -> Ambient:
        """Clock and randomness."""
        return self.head.backend.ambient

    @property
    def landed(self) -> Landed | None:
        """The snapshot of an earlier change with the same idempotency key, if any."""
        return find_landed(self.base, self.target.ref, self.target.idempotency_key)

    @property
    def shape(self) -> ManifestShape:
        """The settings that new data files share."""
        return ManifestShape(self.base.schema, self.base.spec)

    @property
    def no_files(self) -> DataFiles:
        """No new data files."""
        return no_data_files(self.base.spec, self.base.schema)

    def plan(self, where: Predicate | str | Any = None) -> ScanPlan:
        """Plan a read of the branch."""
        return self.plan_bound(bind_filter(where, self.base.schema))

    def plan_bound(self, where: Bound) -> ScanPlan:
        """Plan a read with a filter that is already bound."""
        return plan_scan(self.reading, self.base, resolve_version(self.base, self.target.ref), where)

    def merging(self, rows: object) -> tuple["TableWrite", object]:
        """Return the change on a table with the columns of the rows added, in the same commit.

        The rows are returned with it, because a stream can be inspected only once.
        """
        taken = hold_rows(rows)
        fields = news_of(as_schema(taken), self.base.schema)
        if not fields:
            return self, taken
        union = TableEvolution(self.base)
        try:
            union.union_by_name(Schema(fields))
            evolved = propose_all([EvolveTable(union.steps)], self.base, WriteContext.of(self.head.backend))
        except InvalidInput as error:
            raise SchemaMismatch(f"cannot merge the schema of the rows: {error}", hint=error.hint) from error
        evolve = EvolveTable([*union.steps, _columns_as_written(self.base.schema, evolved.schema)])
        return replace(self, base=evolved, before=(*self.before, evolve)), taken

    def append(self, rows: object) -> Snapshot | None:
        """Append rows."""
        return self.append_files(self.write(rows))

    def append_files(self, files: DataFiles) -> Snapshot | None:
        """Append written files."""
        if files.num_rows == 0:
            return None
        return self.commit(lambda: AppendFiles(files, self.base.spec, self.base.schema, self.target), files)

    def replace_matching(
        self, rows: object, where: Predicate | str | Any, verb: Verb, *, check_rows: bool = False
    ) -> Snapshot | None:
        """Replace the rows that match a filter by new rows, which must match it too if `check` is set."""
        plan = self._touched(self.plan(where), rows)
        read_set, check = self.read_set(plan, verb), RowCheck.of(plan.where, self.base.schema) if check_rows else None
        return self.replace_files(self.write(rows, [plan], check), read_set, plan.partial_files)

    def replace_partitions(self, rows: object) -> Snapshot | None:
        """Replace all partitions that the rows belong to."""
        plan = self.plan_by_partition()
        return self.replace_partitions_by(self.write(rows), plan)

    def plan_by_partition(self) -> ScanPlan:
        """Plan a read of the branch. All files must have the current partition spec."""
        plan = self.plan()
        others = sorted(set(plan.files.spec_id.to_pylist()) - {self.base.spec.spec_id})
        if others:
            raise InvalidInput(
                f"cannot overwrite partitions: the table has files of older partition specs ({others})",
                hint="Overwrite with a filter, or compact the table first",
            )
        return plan

    def replace_partitions_by(self, files: DataFiles, plan: ScanPlan) -> Snapshot | None:
        """Replace all partitions that the written files belong to."""
        return self.commit(lambda: self.replacing_partitions(files, plan), files)

    def replacing_partitions(self, files: DataFiles, plan: ScanPlan) -> OverwriteFiles | None:
        """Return the action that replaces the partitions of the written files, or None if there are none."""
        new = AddedFiles(files, self.shape)
        partitions = PartitionSet(self.base.spec.spec_id, new.partitions)
        replaced = replace(plan, files=partitions.restrict(plan.files))
        return self.replacing(files, replace(self.read_set(replaced, OVERWRITE), partitions=partitions))

    def replace_named(self, rows: object | None, locations: Iterable[str], verb: Verb) -> Snapshot | None:
        """Replace all rows of some data files by new rows, if there are any."""
        wanted, plan = set(locations), self.plan()
        if missing := wanted - plan.files.paths:
            raise NotFound(f"{len(missing)} file(s) are not in the table, such as {min(missing)}")
        read_set = self.read_set(replace(plan, files=plan.files.at(wanted)), replace(verb, isolation=None))
        return self.replace_files(self.no_files if rows is None else self.write(rows), read_set)

    def replace_files(
        self, files: DataFiles, read_set: ReadSet, carried: PlannedFiles | None = None
    ) -> Snapshot | None:
        """Replace the files of a read set by written files; `carried`: the files whose remaining rows were kept."""
        return self.commit(lambda: self.replacing(files, read_set, carried), files)

    def replacing(
        self, files: DataFiles, read_set: ReadSet, carried: PlannedFiles | None = None
    ) -> OverwriteFiles | None:
        """Return the action that replaces the files of a read set by written files, or None to do nothing."""
        carried = read_set.plan.files.slice(0, 0) if carried is None else carried
        new = AddedFiles(files, self.shape)
        place = delete_destination(self.delete_plan(), local_name())
        action = OverwriteFiles(files=new, read_set=read_set, carried=carried, target=self.target, place=place)
        return None if action.changes_nothing else action

    def read_set(self, plan: ScanPlan, verb: Verb) -> ReadSet:
        """Return the read set of a change that read a plan."""
        start = find_starting_snapshot(self.head.committed(self.base), self.base, self.target.ref)
        isolation = verb.isolation.read(self.base.properties) if verb.isolation else SNAPSHOT
        return ReadSet(plan, self.target.ref, verb.name, isolation, start)

    def write(self, rows: object, replaced: Sequence[ScanPlan] = (), check: RowCheck | None = None) -> DataFiles:
        """Write rows, and the remaining rows of partially replaced files, to new data files.

        check: a filter that the new rows must match; remaining rows need not.
        """
        moves_rows = any(plan.partial_files.num_rows for plan in replaced)
        plan = replace(self.write_plan(moves_rows=moves_rows), check=check)
        partial = sum(plan.partial_files.total_bytes for plan in replaced)
        return self.engine(partial, rows).write(rows, plan, replaced)

    def open_source(self, rows: object) -> MergeSource:
        """Prepare the source rows of a merge, so that each read returns the same rows."""
        return self._choice.open_source(rows, self.base)

    def source_keys(self, source: MergeSource, merge: Merge) -> SourceKeys:
        """Find out which rows of the table the source rows can match."""
        return self._choice.source_keys(source, merge, self.base)

    def engine(self, work_bytes: int, rows: object = None, needs_spark: str | None = None) -> RowEngine:
        """Choose the engine for work that reads this many bytes, or that takes rows.

        needs_spark: what only Spark can evaluate.
        """
        use = self.engine_use(work_bytes, rows, needs_spark)
        self.uses.append(use)
        return self._choice.open(use, self.reading, self.base, rows)

    def engine_use(self, work_bytes: int, rows: object = None, needs_spark: str | None = None) -> EngineUse:
        """Return the engine for such work, and why."""
        return self._choice.use(work_bytes, self.store, rows, needs_spark)

    @property
    def _choice(self) -> EngineChoice:
        return EngineChoice(self.head.sessions, self.asked)

    def run(
        self,
        engine: RowEngine,
        work: FileWork[W],
        groups: Iterable[Iterable[FileTask]],
        on_result: Callable[[W], object] = lambda _: None,
    ) -> list[W]:
        """Run engine work that writes files; remove them if it fails."""
        done: list[W] = []
        try:
            for result in engine.run(work, groups):
                done.append(result)
                on_result(result)
        except BaseException:
            remove_quietly(self.store, [location for result in done for location in result.locations])
            raise
        return done

    def write_plan(self, *, moves_rows: bool, is_dry_run: bool = False) -> WritePlan:
        """Return the settings for new files, with a unique name prefix."""
        return plan_write(self.base, self._new_name(is_dry_run=is_dry_run), moves_rows=moves_rows, options=self.options)

    def delete_plan(self, *, is_dry_run: bool = False) -> WritePlan:
        """Return the settings for new delete files, with a unique name prefix."""
        return plan_deletes(self.base, self._new_name(is_dry_run=is_dry_run))

    def _new_name(self, *, is_dry_run: bool) -> str:
        """Return a name for files; a dry run writes none, so that it needs no lease for them."""
        return self.ambient.random_uuid().hex if is_dry_run else self._open().new_name()

    def commit(
        self,
        make: Callable[[], SnapshotAction | None],
        files: DataFiles,
        deletes: Sequence[str] = (),
        *,
        is_optional: bool = False,
    ) -> Snapshot | None:
        """Commit an action that adds files; without an action, do nothing. deletes: where delete files are.

        is_optional: the action may turn out to have nothing to do.
        """
        is_optional = is_optional or self.target.idempotency_key is not None
        own = OwnFiles([*files.file_path.to_pylist(), *deletes], self.base, is_optional, self._open())
        preparing = begin_attempt(self.store, self.opened)
        try:
            action = make()
            if action is None:
                return None
            action.prepare(self.base, WriteContext.of(self.head.backend, preparing.store, preparing.write_id))
        except BaseException:
            self._discard(own, preparing.written)
            raise
        metadata = self.head.commit([*self.before, action], own)
        if self.target.idempotency_key is None:
            return self._with_engine(metadata.ref_head(self.target.ref))
        if action.snapshot_id is not None and (made := metadata.snapshots.find(action.snapshot_id)) is not None:
            return self._with_engine(made)
        # Another run of the same change committed first; it may share the same files.
        remove_unreferenced(self.reading, [*own.locations, *action.reusable_files()], metadata, self.base)
        landed = find_landed(metadata, self.target.ref, self.target.idempotency_key)
        return landed.snapshot if landed else None

    def _open(self) -> OpenWrite:
        """Return what protects the files of this change, from its first file on."""
        if not self.opened:
            self.opened.append(OpenWrite(self.head.backend))
            self.opened[0].protect(self.head.committed(self.base))
        return self.opened[0]

    def _with_engine(self, made: Snapshot | None) -> Snapshot | None:
        return replace(made, engine=str(self.uses[-1])) if made is not None and self.uses else made

    def _discard(self, own: OwnFiles, written: Sequence[str]) -> None:
        """Remove the files of a change that was never proposed."""
        remove_quietly(self.store, written)
        try:
            now = self.head.load().metadata
        except IcefieldError:
            return
        remove_unreferenced(self.reading, own.locations, now, own.since)

    def _touched(self, plan: ScanPlan, rows: object) -> ScanPlan:
        """Drop files without matching rows from a plan: they need not be rewritten."""
        partial = plan.partial_files
        if plan.where == TRUE or partial.num_rows == 0:
            return plan
        engine = self.engine(partial.total_bytes, rows)
        hit = list(engine.run(FindMatches(plan.version.schema, plan.where), engine.group(plan.tasks(partial))))
        return replace(plan, files=PlannedFiles.concat([plan.whole_files, partial.filter(pa.array(hit, pa.bool_()))]))


def open_write(head: TableHead, ref: str) -> tuple[TableVersion, list[OpenWrite]]:
    """Return the newest version of a table, and what protects the files of its branch while a change reads them."""
    base = head.load()
    if not (isinstance(head, LiveHead) and needs_lease(base.metadata)):
        return base, []
    while True:
        write, reads = OpenWrite(head.backend), base.metadata.ref_head(ref)
        write.protect(base.metadata, [reads] if reads else [])
        # A collector that did not see the lease has moved the pointer before.
        now = head.load()
        if reads is None or now.metadata.snapshots.find(reads.snapshot_id) is not None:
            return base, [write]
        write.close()
        base = now


def _columns_as_written(before: Schema, written: Schema) -> Step:
    """Return a step that fails if the columns of the rows would get different ids than their files have."""

    def check(draft: Draft) -> None:
        added = written.by_id.keys() - before.by_id.keys()
        moved = [i for i in added if draft.schema.paths.get(i) != written.paths[i]]
        if moved or draft.schema.by_id.keys() - draft.base.schema.by_id.keys() - added:
            raise ConcurrentChange(
                "cannot merge the schema of the rows: columns of the table were changed concurrently",
                hint="Nothing was changed; run it again",
            )

    return check
