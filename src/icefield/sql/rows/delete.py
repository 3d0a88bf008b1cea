"""DELETE FROM table [alias] [WHERE condition], and TRUNCATE TABLE table [PARTITION (column = value, ...)]."""

from dataclasses import dataclass
from functools import partial

from icefield.dml.verbs import DELETE
from icefield.sql.counts import counts_of_change
from icefield.sql.rows.expressions import Wording, pointing_into
from icefield.sql.rows.partition import PartitionValue, parse_partition, partition_filter
from icefield.sql.rows.spark import starting_spark
from icefield.sql.rows.subqueries import Subqueries
from icefield.sql.rows.target import Target, filter_text, parse_target
from icefield.sql.session import Rows, Run
from icefield.sql.syntax.cursor import Cursor, Name
from icefield.sql.syntax.place import Place
from icefield.table.table import Table

_ALL_ROWS = "TRUE"


@dataclass(frozen=True)
class Delete:
    """A DELETE. where: None for all rows."""

    cursor: Cursor
    target: Target
    where: Place | None

    def run(self, run: Run) -> Rows:
        """Delete the rows, and return what was done."""
        places = () if self.where is None else (self.where,)
        with Subqueries.opened(run, self.target, DELETE, self.cursor, places) as opened:
            table = opened.run.table(self.target.name, "delete from")
            wording = self.target.wording(run, table)
            with pointing_into(*places):
                where = _ALL_ROWS if self.where is None else condition_text(opened, self.where, wording, table)
            delete = partial(table.delete, where, target_name=wording.labels[0].name, engine=run.engine)
            result = starting_spark(run, lambda: delete(dry_run=run.is_dry_run), *places, written=opened.written)
        return counts_of_change(result)

    def explain(self, run: Run, mode: str) -> str:
        """Return which files would be read or dropped, and what prunes the others."""
        return explain_matching(run, self.target, self.cursor, self.where)


@dataclass(frozen=True)
class Truncate:
    """A TRUNCATE TABLE, possibly of one partition."""

    cursor: Cursor
    name: Name
    partition: tuple[PartitionValue, ...]

    def run(self, run: Run) -> Rows:
        """Delete all rows, or those of a partition."""
        table = run.table(self.name, "truncate")
        where = partition_filter(run, table, self.cursor, self.partition) if self.partition else _ALL_ROWS
        return counts_of_change(table.delete(where, dry_run=run.is_dry_run, engine=run.engine))

    def explain(self, run: Run, mode: str) -> str:
        """Return which files would be dropped."""
        table = run.table(self.name, "truncate")
        where = partition_filter(run, table, self.cursor, self.partition) if self.partition else _ALL_ROWS
        return str(table.explain_change(where, engine=run.engine))


def parse_delete(cursor: Cursor) -> Delete:
    """Parse DELETE."""
    cursor.expect("delete", "from")
    target = parse_target(cursor, "delete from")
    where = cursor.rest("a condition") if cursor.accept("where") else None
    cursor.expect_end()
    return Delete(cursor, target, where)


def parse_truncate(cursor: Cursor) -> Truncate:
    """Parse TRUNCATE TABLE."""
    cursor.expect("truncate", "table")
    name = cursor.name("the table to truncate")
    partition = parse_partition(cursor) if cursor.is_at("partition") else ()
    cursor.expect_end()
    return Truncate(cursor, name, partition)


def explain_matching(run: Run, target: Target, cursor: Cursor, where: Place | None) -> str:
    """Explain a change of the rows that match a condition."""
    table = run.table(target.name)
    if where is None:
        return str(table.explain_change(engine=run.engine))
    wording = target.wording(run, table)
    with pointing_into(where):
        text = filter_text(wording.text(cursor, where), table.schema, wording.zone)
        return str(table.explain_change(text, target_name=wording.labels[0].name, engine=run.engine))


def condition_text(opened: Subqueries, where: Place, wording: Wording, table: Table) -> str:
    """Return the condition of a DELETE or UPDATE for the engine."""
    return opened.writes(filter_text(opened.text(where, wording), table.schema, wording.zone), where)
