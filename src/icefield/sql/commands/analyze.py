"""ANALYZE TABLE, which computes a statistics file, and REFRESH TABLE, which has nothing to do.

ANALYZE TABLE shop.orders COMPUTE STATISTICS FOR COLUMNS id, customer      as compute_table_stats
"""

from collections.abc import Sequence
from dataclasses import dataclass

from icefield.errors import Unsupported
from icefield.model.names import TableName
from icefield.sql.commands.details import relation_of
from icefield.sql.namespaces import open_namespace
from icefield.sql.query.spark_statements import parse_left_to_spark
from icefield.sql.rows.expressions import pointing_into
from icefield.sql.session import NOTHING, Rows, Run, Statement
from icefield.sql.syntax.cursor import Cursor, Name


@dataclass(frozen=True)
class Analyze:
    """ANALYZE TABLE. columns: None for all. is_read: whether rows are read; NOSCAN is for sizes, which are known."""

    name: Name
    columns: Sequence[Name] | None
    is_read: bool

    def run(self, run: Run) -> Rows:
        """Compute the statistics of the newest snapshot; of a table without one there are none."""
        table = run.table(self.name, "analyze")
        names = None if self.columns is None else [str(column) for column in self.columns]
        snapshot = table.current_snapshot
        if self.is_read and not run.is_dry_run and snapshot is not None:
            with pointing_into(*(column.place for column in self.columns or (self.name,))):
                table.compute_statistics(names, snapshot_id=snapshot.snapshot_id, engine=run.engine)
        return NOTHING


@dataclass(frozen=True)
class AnalyzeTables:
    """ANALYZE TABLES, of one namespace."""

    namespace: Name | None
    is_read: bool

    def run(self, run: Run) -> Rows:
        """Compute the statistics of each table."""
        space = run.session.namespace if self.namespace is None else open_namespace(run, self.namespace)
        for each in run.lake.catalog.list_tables(space) if space and self.is_read and not run.is_dry_run else ():
            table = run.open(TableName(each.namespace, each.name))
            if table.current_snapshot is not None:
                table.compute_statistics(engine=run.engine)
        return NOTHING


@dataclass(frozen=True)
class Refresh:
    """REFRESH TABLE: every statement reads the newest version anyway."""

    name: Name

    def run(self, run: Run) -> Rows:
        """Check the name."""
        if run.find_temporary(self.name.parts) is None:
            relation_of(run, self.name)
        return NOTHING


def parse_analyze(cursor: Cursor) -> Statement:
    """Parse ANALYZE TABLE or ANALYZE TABLES."""
    cursor.expect("analyze")
    if cursor.accept("tables"):
        space = cursor.name("the name of a namespace") if cursor.accept_any("in", "from") else None
        cursor.expect("compute", "statistics")
        is_read = not cursor.accept("noscan")
        cursor.expect_end()
        return AnalyzeTables(space, is_read)
    cursor.expect("table")
    name = cursor.name("the name of a table")
    if cursor.is_at("partition"):
        raise cursor.error(
            "ANALYZE does not take a partition", hint="CALL system.compute_partition_stats", kind=Unsupported
        )
    cursor.expect("compute", "statistics")
    is_read = not cursor.accept("noscan")
    columns = _parse_columns(cursor) if cursor.accept("for") else None
    cursor.expect_end()
    return Analyze(name, columns, is_read)


def _parse_columns(cursor: Cursor) -> list[Name] | None:
    if cursor.accept("all", "columns"):
        return None
    cursor.expect("columns")
    columns = [cursor.name("a column")]
    while cursor.accept(","):
        columns.append(cursor.name("a column"))
    return columns


def parse_refresh(cursor: Cursor) -> Statement:
    """Parse REFRESH [TABLE]; functions and paths are Spark's."""
    start = cursor.position
    cursor.expect("refresh")
    token = cursor.token()
    if token is None or not token.is_name or cursor.is_at("function"):
        return parse_left_to_spark(cursor, start)
    if cursor.token(1) is not None and cursor.peek(1) != ".":
        cursor.accept("table")
    name = cursor.name("the name of a table")
    cursor.expect_end()
    return Refresh(name)
