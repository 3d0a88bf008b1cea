"""MERGE on Spark: source rows matched with rows of the table.

    source    S, safe to read twice; T: the planned files
    match     S is small, and inserts only copy its columns: T join broadcast(S) -> pairs; rows to insert are made of
              all of S, and the last stage drops those that matched
              otherwise: T' = T semi join S, before rows get their file and row id; S left join T' -> pairs
              for WHEN NOT MATCHED BY SOURCE also T anti join S

The target is streamed once past a broadcast of the source, or of the columns that ON needs.
UPDATE SET * reads the columns of ON alone: nothing of the old row is kept but its id.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, reduce

import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name that every Spark user knows

from icefield.engine.bind_clauses import field_at
from icefield.engine.change import Assignment, Changed, Clause, Effect, Merge, SourceColumn, When, show_row
from icefield.errors import InvalidInput
from icefield.spark.change.change import (
    Matches,
    Restrict,
    SparkChange,
    first_clause,
    pieces_of_table,
    replaces,
    total,
)
from icefield.spark.change.checks import check_expressions
from icefield.spark.change.distribute import to_insert
from icefield.spark.change.expressions import NewValues, Side, as_column, expressions_of, is_mentioned, named
from icefield.spark.change.skew import BLOCK_ROWS
from icefield.spark.change.source import SourceRows
from icefield.spark.change.store_assignment import never_fails
from icefield.spark.change.task import CLAUSE, NO_CLAUSE, SOURCE, Row
from icefield.spark.read.logical_columns import ColumnOrText, select_all
from icefield.spark.session.analysis_errors import explained_analysis
from icefield.spark.types import logical_field

MOST_ROWS_TO_BROADCAST = 1_000_000  # of the columns that ON needs
MOST_ROWS_TO_STREAM_PAST = BLOCK_ROWS  # of all columns; partitions of larger sources may be split


@dataclass(frozen=True)
class SparkMerge:
    """A MERGE in progress. source: its rows. names: of its columns. row_count: how many rows."""

    change: SparkChange
    source: SourceRows
    names: tuple[str, ...]
    merge: Merge
    row_count: int

    def run(self) -> Changed:
        """Match source rows with the rows of planned files, and apply the clauses."""
        with explained_analysis("merge"):
            frames = []
            if self._streams:
                frames += self._pieces_of_stream()
            elif self._clauses(When.MATCHED, When.NOT_MATCHED):
                frames.append(self._pieces_of_source())
            if self._clauses(When.NOT_MATCHED_BY_SOURCE):
                frames.append(self._pieces_without_source())
            results = self.change.run(
                frames, refuses_twice=self.merge.refuses_double_matches, inserted=self._many_rows_to_insert()
            )
        if twice := next((result.twice for result in results if result.twice is not None), None):
            self.change.remove_files()
            raise self._double_match(twice)
        return total(results, self.merge.clauses)

    @cached_property
    def _target(self) -> Side:
        return self.change.target(self.merge.target_name)

    @cached_property
    def _source(self) -> Side:
        free = self.change.free
        named = {name: free.of("source", at) for at, name in enumerate(self.names)}
        copies = {name: free.of("copy", at) for at, name in enumerate(self.source.copies)}
        return Side(self.merge.source_name, named, self.source.frame.schema, copies)

    def _clauses(self, *kinds: When) -> list[tuple[int, Clause]]:
        return [(at, clause) for at, clause in enumerate(self.merge.clauses) if clause.when in kinds]

    @property
    def _is_small(self) -> bool:
        return self.row_count <= MOST_ROWS_TO_BROADCAST

    @property
    def _may_be_large(self) -> bool:
        """Whether one of the sides may have more rows than a driver should hold."""
        files = self.change.plan.scan.files
        return not self._is_small or (pc.sum(files.record_count).as_py() or 0) > MOST_ROWS_TO_BROADCAST

    def _numbered_source(self) -> DataFrame:
        return self.source.frame.toDF(*self._source.generated, self._number)

    @property
    def _number(self) -> str:
        """The name of the number of a source row in frames."""
        return self.change.free.of("number")

    @property
    def _streams(self) -> bool:
        """Whether the rows of the table are streamed past the whole source, without a join that needs a shuffle.

        Rows to insert are then made of all source rows, and those of matched ones are dropped later. So making them
        must not fail.
        """
        clauses, inserting = self._clauses(When.MATCHED, When.NOT_MATCHED), self._clauses(When.NOT_MATCHED)
        is_small = self.row_count <= MOST_ROWS_TO_STREAM_PAST and self.change.plan.scan.files.num_rows > 0
        return is_small and bool(clauses) and all(self._only_copies(clause) for _, clause in inserting)

    def _only_copies(self, clause: Clause) -> bool:
        def fits(assignment: Assignment) -> bool:
            if not isinstance(assignment.value, SourceColumn):
                return False
            wanted = logical_field(field_at(self.change.base.schema, assignment.path)).dataType
            return never_fails(self._source.type_of(assignment.value.path), wanted)

        return clause.condition is None and all(map(fits, clause.assignments))

    def _on(self) -> Column:
        if self.merge.on is not None:
            return as_column(self.merge.on)
        return reduce(
            Column.__and__,
            (self._target.column([key.target]) == self._source.column([key.source]) for key in self.merge.keys),
        )

    @property
    def _on_text(self) -> list[object]:
        return [] if self.merge.on is None else [self.merge.on]

    def _target_columns(self, clauses: Sequence[tuple[int, Clause]]) -> list[str]:
        """Return the columns of the table that are needed: for ON, for expressions, and to keep their values."""
        expressions = [*self._on_text, *expressions_of(clause for _, clause in clauses)]
        keys = {key.target for key in self.merge.keys} if self.merge.on is None else set[str]()
        updates = [clause for _, clause in clauses if clause.effect is Effect.UPDATE]
        return [
            name
            for name in self._target.columns
            if name in keys
            or name in self.change.filtered
            or is_mentioned(name, expressions)
            or any(not replaces(name, clause) for clause in updates)
        ]

    def _source_for_on(self) -> DataFrame:
        """Return what ON needs of the source."""
        keys = [key.source for key in self.merge.keys] if self.merge.on is None else []
        needed = [name for name in self.names if name in keys or is_mentioned(name, self._on_text)]
        held = [self._source.columns[name] for name in needed or self.names[:1]]
        held += [copy for name, copy in self._source.copies.items() if name in keys]
        columns = self._numbered_source().select(*held)
        return self._broadcast(self._source.only(needed).show(columns, self._on_text))

    def _broadcast(self, frame: DataFrame) -> DataFrame:
        return F.broadcast(frame) if self._is_small else frame

    def _restrict(self, needed: Sequence[str]) -> Restrict:
        """Return what keeps the rows of the table that match a source row."""

        def restrict(frame: DataFrame, names: Sequence[str]) -> DataFrame:
            target = self._target.only(needed).show(self._placed(frame, names, needed), self._on_text)
            return target.join(self._source_for_on(), self._on(), "left_semi")

        return restrict

    def _pairs(self) -> DataFrame:
        """Return source rows with the rows of the table that they match, and the first clause for matched ones."""
        matched = self._clauses(When.MATCHED)
        needed = self._target_columns(matched)
        restrict = self._restrict(needed) if self._is_small else None
        own = expressions_of(clause for _, clause in matched)
        rows = self.change.read(needed, restrict)
        target = self._target.only(needed).show(rows, [*own, *self._on_text])
        source = self._source.show(self._numbered_source(), [*own, *self._on_text])
        check_expressions(target, source, own)
        how = "left" if self.merge.has(When.NOT_MATCHED) else "inner"
        pairs = (_shuffled(source) if self._may_be_large else source).join(target, self._on(), how)
        is_matched = F.col(self.change.pos).isNotNull()
        clause = F.when(is_matched, F.coalesce(first_clause(matched), F.lit(NO_CLAUSE)))
        return pairs.select("*", clause.alias(self.change.clause))

    def _pieces_of_stream(self) -> list[DataFrame]:
        """Return the results of the clauses for source rows, of one pass over the table."""
        change, schema = self.change, self.change.new_rows.own
        matched, inserting = self._clauses(When.MATCHED), self._clauses(When.NOT_MATCHED)
        needed, own = self._target_columns(matched), expressions_of(clause for _, clause in matched)
        expressions = [*own, *self._on_text]
        updates = [(at, clause) for at, clause in matched if clause.effect is Effect.UPDATE]
        values = NewValues(schema, self._target, self._source)

        def match(frame: DataFrame, names: Sequence[str]) -> DataFrame:
            target = self._target.only(needed).show(self._placed(frame, names, needed), expressions)
            source = F.broadcast(self._source.show(self._numbered_source(), expressions))
            check_expressions(target, source, own)
            pairs = target.join(source, self._on())
            clause = F.coalesce(first_clause(matched), F.lit(NO_CLAUSE))
            new = change.values([(at, values.of(clause, pairs)) for at, clause in updates])
            numbered = pairs.select("*", clause.alias(change.clause))
            return select_all(numbered, ["*", *(named(value, change.new(at)) for at, value in enumerate(new))])

        new = [change.new(at) for at in range(len(schema.fields))]
        kept = [change.clause, *new, *([self._number, *self._source.generated] if inserting else [])]
        rows = change.read(needed, match, kept)
        if not inserting:
            return [change.pieces(rows, [at for at, _ in updates], [], new)]
        ((number, clause),) = inserting
        inserted = NewValues(schema, None, self._source).of(clause, rows)
        pieces = change.pieces(rows, [at for at, _ in updates], [], new, Matches(self._number, inserted))
        return [pieces, self._inserted(self._numbered_source(), number, inserted)]

    def _many_rows_to_insert(self) -> DataFrame | None:
        """Return all rows of a large source as rows to insert, whether they match or not."""
        inserting = self._clauses(When.NOT_MATCHED)
        if not inserting or self.row_count <= BLOCK_ROWS:
            return None
        number, clause = inserting[-1]
        rows = self._source.show(self._numbered_source(), expressions_of([clause]))
        return self._inserted(rows, number, NewValues(self.change.new_rows.own, None, self._source).of(clause, rows))

    def _inserted(self, rows: DataFrame, clause: int, values: Sequence[ColumnOrText]) -> DataFrame:
        own = [named(value, name) for value, name in zip(values, self.change.new_rows.numbers, strict=False)]
        made = select_all(rows, [f"{clause} AS {CLAUSE}", f"{self._number} AS {SOURCE}", *own])
        return to_insert(made, self.change.new_rows)

    def _placed(self, frame: DataFrame, names: Sequence[str], needed: Sequence[str]) -> DataFrame:
        """Add the columns of the table under the names that they have here."""
        pairs = zip(names, needed, strict=True)
        return frame.selectExpr("*", *(f"{name} AS {self._target.columns[own]}" for name, own in pairs))

    def _pieces_of_source(self) -> DataFrame:
        """Return the results of the clauses for source rows."""
        change, schema = self.change, self.change.new_rows.own
        pairs = self._pairs()
        matched, inserting = self._clauses(When.MATCHED), self._clauses(When.NOT_MATCHED)
        updates = [(at, clause) for at, clause in matched if clause.effect is Effect.UPDATE]
        values = NewValues(schema, self._target, self._source)
        updated = change.values([(at, values.of(clause, pairs)) for at, clause in updates])
        ids = [change.row_id] if change.new_rows.has_row_id else []
        own = [named(value, change.new(at)) for at, value in enumerate(updated)]
        kept = [*self._source.generated, change.file, change.pos, change.clause, *ids]
        old = select_all(pairs, [*kept, *own])
        # From here on names refer to the source alone.
        insert_expressions = expressions_of(clause for _, clause in inserting)
        shown = self._source.show(old, insert_expressions)
        check_expressions(shown, self.change.one_row, insert_expressions)
        which = F.when(F.col(change.pos).isNull(), first_clause(inserting)).otherwise(F.col(change.clause))
        numbered = shown.withColumn(change.clause, which).where(F.col(change.clause).isNotNull())
        new = NewValues(schema, None, self._source)
        old_values = [change.new(at) for at in range(len(own))]
        chosen = change.values([(at, new.of(clause, shown)) for at, clause in inserting], old_values)
        return change.pieces(numbered, [at for at, _ in updates], [at for at, _ in inserting], chosen)

    def _pieces_without_source(self) -> DataFrame:
        """Return the results of the clauses for rows of the table that no source row matches."""
        clauses = self._clauses(When.NOT_MATCHED_BY_SOURCE)
        needed = self._target_columns(clauses)
        own = expressions_of(clause for _, clause in clauses)
        rows = self._target.only(needed).show(self.change.read(needed), [*own, *self._on_text])
        check_expressions(rows, self._numbered_source(), own)
        left = (rows if self._is_small else _shuffled(rows)).join(self._source_for_on(), self._on(), "left_anti")
        return pieces_of_table(self.change, left, clauses, self._target)

    def _double_match(self, twice: Row) -> InvalidInput:
        """Build the error for a row of the table that matches two source rows."""
        is_row = (F.col(self.change.file) == twice.file) & (F.col(self.change.pos) == twice.position)
        pairs = self._pairs().where(is_row)
        columns = [F.col(generated).alias(f"s{at}") for at, generated in enumerate(self._source.columns.values())]
        found = [dict(zip(self.names, row, strict=True)) for row in pairs.select(*columns).limit(2).collect()]
        keys = {key.target: found[0][key.source] for key in self.merge.keys} if found else {}
        which = f"with the key {keys}" if keys else f"at position {twice.position} of {twice.file}"
        shown = " and ".join(show_row(row) for row in found)
        return InvalidInput(
            f"two source rows match the row of the table {which}: {shown}", hint="Keep one source row for each"
        )


def _shuffled(frame: DataFrame) -> DataFrame:
    """Return a side of a join that Spark shuffles, whatever size it estimates: a broadcast passes through the driver.

    Its estimate for rows that Python tasks produce is the size of what the tasks get: a few kilobytes for a table whose
    files are read by tasks, or for a source of `mapInPandas`.
    """
    return frame.hint("merge")
