"""DELETE, UPDATE and MERGE on Spark: one shuffle, and neither rows nor positions pass through the driver.

rows      of the table that match a filter, or pairs of a MERGE (`merge`)
clauses   the first clause that applies to a row, as a number
apply     `distribute`: positions and new rows, shuffled -> `ApplyTask`: files -> one small row per task
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name that every Spark user knows

from icefield.ambient import SystemAmbient
from icefield.cache.reading import ReadContext
from icefield.engine.change import Changed, ChangePlan, Clause, Effect, RowCounts, When
from icefield.expr.bind.bound import columns_of
from icefield.model.metadata import TableMetadata
from icefield.parquet.read.read import TableFiles
from icefield.spark.change.checks import check_expressions
from icefield.spark.change.distribute import MATCHED_PREFIX, Clauses, Distribution, NewRows, planned_files, split
from icefield.spark.change.expressions import (
    NewValues,
    Side,
    as_column,
    column_of,
    expressions_of,
    is_mentioned,
    named,
    null_of,
)
from icefield.spark.change.skew import Blocks, bytes_per_row
from icefield.spark.change.task import CLAUSE, FILE, NO_CLAUSE, POS, SOURCE, ApplyTask, TaskResult
from icefield.spark.read.logical_columns import ColumnOrText, select_all
from icefield.spark.read.native_read import FilesToRead, FreeNames
from icefield.spark.read.read import read_files
from icefield.spark.session.analysis_errors import explained_analysis
from icefield.spark.session.worker_errors import explain_worker_error
from icefield.spark.session.workers import check_workers
from icefield.spark.task_result import RESULTS, unpacked_results
from icefield.spark.write.settings import changed_task_bytes, task_bytes_of
from icefield.spark.write.write import check_visible, remove_files_of_write
from icefield.types import metadata_columns
from icefield.types.metadata_columns import POSITION, ROW_ID, is_metadata_column, with_free_names
from icefield.types.schema import Schema

Restrict = Callable[[DataFrame, Sequence[str]], DataFrame]


@dataclass(frozen=True)
class Matches:
    """Matched source rows, which must not be inserted. number: the name of their number. inserted: their values."""

    number: str
    inserted: Sequence[ColumnOrText]


@dataclass(frozen=True)
class SparkChange:
    """One change in progress."""

    session: SparkSession
    context: ReadContext
    base: TableMetadata
    plan: ChangePlan

    def run(
        self, frames: Sequence[DataFrame], *, refuses_twice: bool, inserted: DataFrame | None = None
    ) -> list[TaskResult]:
        """Apply split rows, and return the results of tasks; after an error no file is left.

        frames: of `pieces`. inserted: rows of `to_insert`, if they are many, to find large partitions.
        """
        check_workers(self.session)
        with self.clean_up():
            distribution = self.distribution
            if inserted is not None:
                distribution = distribution.with_large_partitions(inserted)
            results = self._run(frames, distribution, refuses_twice=refuses_twice)
            self.check_visible([result.changed for result in results])
        return results

    @contextmanager
    def clean_up(self) -> Iterator[None]:
        """Remove all files of the change after an error, and raise the one that explains it."""
        try:
            yield
        except BaseException as error:
            self.remove_files()
            if explained := explain_worker_error(error):
                raise explained from error
            raise

    def check_visible(self, results: Iterable[Changed]) -> None:
        """Raise Unsupported if this process does not see files that executors wrote."""
        check_visible(self.context.store, [path for changed in results for path in changed.locations])

    def _run(self, frames: Sequence[DataFrame], distribution: Distribution, *, refuses_twice: bool) -> list[TaskResult]:
        settings, store = self.plan.settings, self.context.store
        ordered = distribution.shuffle([*frames, planned_files(self.session, self.plan.scan, self.new_rows)])
        task = ApplyTask(
            distribution.settings_of(settings), self.new_rows.names, store, TableFiles.of(self.base), refuses_twice
        )
        with changed_task_bytes(self.session, task_bytes_of(settings.rows)):
            return list(unpacked_results(ordered.mapInArrow(task, RESULTS).collect()))

    @cached_property
    def distribution(self) -> Distribution:
        """How results are shuffled."""
        settings, files = self.plan.settings, self.plan.scan.files
        return Distribution(
            self.new_rows,
            settings.rows,
            self.base.sort_order,
            settings.mode,
            files.total_bytes,
            bytes_per_row(files),
            Blocks.of(files, settings.rows.target_file_size_bytes),
        )

    def remove_files(self) -> None:
        """Remove all files of the change."""
        for plan in (self.plan.settings.rows, self.plan.settings.deletes):
            if plan is not None:
                remove_files_of_write(self.context.store, plan)

    @cached_property
    def free(self) -> FreeNames:
        """Names that no column has."""
        return FreeNames(SystemAmbient().random_uuid().hex)

    @property
    def one_row(self) -> DataFrame:
        """A frame of one row, whose column no expression can name."""
        return self.session.range(1).toDF(self.free.of("one"))

    @cached_property
    def filtered(self) -> frozenset[str]:
        """The columns that the plan's filter uses, which must be read."""
        own = (i for i in columns_of(self.plan.scan.where) if not is_metadata_column(i))
        return frozenset(self.base.schema.paths[i][0] for i in own)

    @cached_property
    def new_rows(self) -> NewRows:
        """The columns of new rows."""
        return NewRows.of(self.plan.settings.rows, self.base.schema)

    def target(self, alias: str) -> Side:
        """Return the side of the table."""
        return Side(alias, {f.name: self.free.of("target", f.field_id) for f in self.base.schema.fields})

    def read(self, needed: Sequence[str], restrict: Restrict | None = None, kept: Sequence[str] = ()) -> DataFrame:
        """Read columns of the planned files under generated names, with the file, position and id of each row.

        kept: columns that `restrict` adds.
        """
        places = [metadata_columns.FILE, POSITION, *((ROW_ID,) if self.new_rows.has_row_id else ())]
        places += [column for column in self.plan.metadata_columns if column not in places]
        own = Schema(tuple(f for f in self.base.schema.fields if f.name in needed))
        schema, _ = with_free_names(own, tuple(places))
        scan = self.plan.scan
        request = FilesToRead(self.context, self.base, scan, scan.files, schema, restrict=restrict, kept=tuple(kept))
        frame = read_files(self.session, request, scan.where)
        names = {metadata_columns.FILE.field_id: self.file, POSITION.field_id: self.pos, ROW_ID.field_id: self.row_id}
        return frame.toDF(*(names.get(f.field_id, self.free.of("target", f.field_id)) for f in schema.fields), *kept)

    @cached_property
    def file(self) -> str:
        """The name of the data file in frames."""
        return self.free.of("file")

    @cached_property
    def pos(self) -> str:
        """The name of the position in frames."""
        return self.free.of("pos")

    @cached_property
    def row_id(self) -> str:
        """The name of the row id in frames."""
        return self.free.of("row_id")

    @cached_property
    def clause(self) -> str:
        """The name of the number of the clause in frames."""
        return self.free.of("clause")

    def new(self, at: int) -> str:
        """Return the name of a new value in frames."""
        return self.free.of("new", at)

    def pieces(
        self,
        frame: DataFrame,
        changed: Sequence[int],
        inserted: Sequence[int],
        values: Sequence[ColumnOrText],
        matches: "Matches | None" = None,
    ) -> DataFrame:
        """Split rows with clauses into positions and new rows, and the numbers of matched source rows."""
        numbers, names = self.new_rows.numbers, {self.file: FILE, self.pos: POS, self.clause: CLAUSE}
        chosen: list[ColumnOrText] = [f"{name} AS {fixed}" for name, fixed in names.items()]
        chosen += [named(value, number) for value, number in zip(values, numbers, strict=False)]
        if self.new_rows.has_row_id:
            is_changed = f"{self.clause} IN ({', '.join(map(str, changed))})" if changed else "FALSE"
            chosen.append(f"CASE WHEN {is_changed} THEN {self.row_id} END AS {numbers[-1]}")
        places = None
        if matches is not None:
            chosen.append(f"{matches.number} AS {SOURCE}")
            places = sorted(self.distribution.columns_of_tasks)
            chosen += [named(matches.inserted[at], f"{MATCHED_PREFIX}{numbers[at]}") for at in places]
        clauses = Clauses(changed, inserted, places, self.distribution.blocks)
        return split(select_all(frame, chosen), clauses, self.new_rows)

    def values(
        self, clauses: Sequence[tuple[int, list[ColumnOrText]]], otherwise: Sequence[str] | None = None
    ) -> list[ColumnOrText]:
        """Return the value of each column of a new row, by its clause. otherwise: of other rows, by name."""
        found: list[ColumnOrText] = []
        for at, column in enumerate(self.new_rows.columns[: len(self.new_rows.own.fields)]):
            rest = null_of(column.dataType) if otherwise is None else otherwise[at]
            found.append(self._choice([(number, values[at]) for number, values in clauses], rest))
        return found

    def _choice(self, values: Sequence[tuple[int, ColumnOrText]], otherwise: ColumnOrText) -> ColumnOrText:
        if not values:
            return otherwise
        if isinstance(otherwise, str) and all(isinstance(value, str) for _, value in values):
            branches = " ".join(f"WHEN {self.clause} = {number} THEN {value}" for number, value in values)
            return f"CASE {branches} ELSE {otherwise} END"
        chosen: Any = F
        for number, value in values:
            chosen = chosen.when(F.col(self.clause) == number, column_of(value))
        whole: Column = chosen.otherwise(column_of(otherwise))
        return whole


def first_clause(clauses: Sequence[tuple[int, Clause]]) -> Column:
    """Return the number of the first clause that applies to a row; null if none does."""
    chosen: Column | None = None
    for number, clause in clauses:
        # NULL alone has no type, and is not a condition to Spark.
        no = F.lit(False)
        condition = F.lit(True) if clause.condition is None else F.coalesce(as_column(clause.condition), no)
        which = F.lit(number)
        chosen = F.when(condition, which) if chosen is None else chosen.when(condition, which)
    return F.lit(None).cast("int") if chosen is None else chosen


def pieces_of_table(
    change: SparkChange, rows: DataFrame, clauses: Sequence[tuple[int, Clause]], side: Side
) -> DataFrame:
    """Return the results of clauses for rows of the table alone."""
    updates = [(at, clause) for at, clause in clauses if clause.effect is Effect.UPDATE]
    values = NewValues(change.new_rows.own, side, None)
    numbered = rows.select("*", first_clause(clauses).alias(change.clause)).where(F.col(change.clause).isNotNull())
    chosen = change.values([(at, values.of(clause, rows)) for at, clause in updates])
    return change.pieces(numbered, [at for at, _ in updates], [], chosen)


def change_matching(change: SparkChange, clause: Clause) -> Changed:
    """Apply a clause to the rows of planned files that match the plan's filter, and its own condition if it has one."""
    side = change.target(change.plan.target_name)
    own = expressions_of([clause])
    keeps = clause.effect is Effect.UPDATE
    needed = [
        name
        for name in side.columns
        if name in change.filtered or is_mentioned(name, own) or (keeps and not replaces(name, clause))
    ]
    with explained_analysis(clause.effect):
        rows = side.only(needed).show(change.read(needed), own)
        check_expressions(rows, change.one_row, own)
        if clause.condition is not None:
            rows, clause = rows.where(as_column(clause.condition)), replace(clause, condition=None)
        frames = [pieces_of_table(change, rows, [(0, clause)], side)]
        results = change.run(frames, refuses_twice=False)
    return total(results, [clause])


def total(results: Sequence[TaskResult], clauses: Sequence[Clause]) -> Changed:
    """Combine the results of tasks."""
    positions, rows = Counter[int](), Counter[int]()
    for result in results:
        positions.update(result.counts)
        rows.update(result.rows)
    matched = {NO_CLAUSE, *(at for at, clause in enumerate(clauses) if clause.when is When.MATCHED)}

    def count(effect: Effect, counts: Counter[int]) -> int:
        return sum(counts[at] for at, clause in enumerate(clauses) if clause.effect is effect)

    counts = RowCounts(
        matched=sum(count for at, count in positions.items() if at in matched),
        updated=count(Effect.UPDATE, positions),
        deleted=count(Effect.DELETE, positions),
        inserted=count(Effect.INSERT, rows),
    )
    return Changed.total([*(result.changed for result in results), Changed(counts=counts)])


def replaces(name: str, clause: Clause) -> bool:
    """Return whether an update assigns a whole column."""
    return any(assignment.path == (name,) for assignment in clause.assignments)
