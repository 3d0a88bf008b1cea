"""What happens to the rows of the table when an INSERT writes new ones, and what it counts.

INSERT INTO            they stay
INSERT OVERWRITE       all go, those of PARTITION, or (mode `dynamic`, OVERWRITE PARTITIONS) those of partitions
                       that get rows
REPLACE WHERE          those that match go; the new ones must match too
REPLACE USING (a, b)   those whose columns are equal to those of a new row go
REPLACE ON condition   those for which it is true together with a row of the query go: as ON of MERGE, it is about the
                       columns of the table and those of the query, by their own names
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from enum import Enum
from typing import Any

from icefield.engine.choose import LOCAL
from icefield.engine.rows import has_session, is_spark, load_spark_engine
from icefield.errors import InvalidInput, Unsupported
from icefield.expr.parse.ast import Predicate
from icefield.expr.query.lexer import LexemeKind
from icefield.expr.values.scope import SOURCE
from icefield.plan.versions import resolve_version
from icefield.sql.counts import counted, counts_of_append, files_of, number_of
from icefield.sql.rows.expressions import Label, find_subquery
from icefield.sql.rows.insert_columns import InsertColumns
from icefield.sql.rows.target import label_of, parse_alias
from icefield.sql.session import Rows, Run
from icefield.sql.syntax.cursor import Cursor, Name
from icefield.sql.syntax.place import Place
from icefield.sql.text.shape import BEGIN_QUERIES
from icefield.table.merge import MergeBuilder
from icefield.table.scan import TableScan
from icefield.table.table import Table

_MODE = "spark.sql.sources.partitionOverwriteMode"
# Before a parenthesis these are not names of columns.
_OPERATORS = frozenset(
    ("in", "exists", "any", "some", "all", "and", "or", "not", "between", "like", "ilike", "rlike", "then", "else")
)


class Replaces(Enum):
    """Which rows of the table an INSERT replaces."""

    NONE = "none"
    ALL = "all"
    PARTITIONS = "partitions"
    MATCHING = "matching"
    EQUAL = "equal"
    JOINED = "joined"


@dataclass(frozen=True)
class NewRows:
    """New rows of a table: Arrow data or a DataFrame.

    merges_schema: they may have new columns. query: the DataFrame that they come from, with its own columns.
    """

    run: Run
    table: Table
    rows: Any
    merges_schema: bool = False
    query: Any = None

    def append(self) -> Rows:
        """Add the rows."""
        if self.run.is_dry_run:
            return counted({"rows_inserted": self.count()}, None, f"append to {self.table.name}")
        with self._explained():
            snapshot = self.table.append(self.rows, merge_schema=self.merges_schema, engine=self._engine)
        return counts_of_append(snapshot)

    def overwrite(self, where: Predicate | str | None) -> Rows:
        """Replace the rows that match a filter, or all; new rows must match it."""
        table = self.table
        if self.run.is_dry_run:
            return self._planned(where)
        with self._explained():
            snapshot = table.overwrite(self.rows, where, merge_schema=self.merges_schema, engine=self._engine)
        if snapshot is None:
            return counted({}, None)
        deleted = self._rows_at(snapshot.parent_snapshot_id, where)
        before = deleted if where is None else self._rows_at(snapshot.parent_snapshot_id)
        inserted = self._rows_at(snapshot.snapshot_id) - before + deleted
        copied = number_of(snapshot, "added-records") - inserted
        counts = {"rows_inserted": inserted, "rows_deleted": deleted, "rows_copied": copied, **files_of(snapshot)}
        return counted(counts, snapshot)

    def overwrite_partitions(self) -> Rows:
        """Replace the partitions that get rows."""
        if self.merges_schema:
            raise Unsupported("an overwrite of partitions cannot add columns", hint="Add them with ALTER TABLE first")
        if self.run.is_dry_run:
            return counted({"rows_inserted": self.count(), "rows_deleted": None}, None, "the partitions that get rows")
        with self._explained():
            snapshot = self.table.overwrite_partitions(self.rows, engine=self._engine)
        if snapshot is None:
            return counted({}, None)
        inserted = number_of(snapshot, "added-records")
        before, after = self._rows_at(snapshot.parent_snapshot_id), self._rows_at(snapshot.snapshot_id)
        return counted(
            {"rows_inserted": inserted, "rows_deleted": before + inserted - after, **files_of(snapshot)}, snapshot
        )

    def replace_equal(self, columns: list[str]) -> Rows:
        """Replace the rows whose columns are equal to those of a new row, in one commit of two snapshots."""
        return self._replace(lambda: self.table.merge(self.rows.select(columns), columns, engine=self._engine))

    def replace_joined(self, condition: str, target_name: str, source_name: str) -> Rows:
        """Replace the rows for which a condition is true with a row of the query, in one commit of two snapshots."""
        return self._replace(
            lambda: self.table.merge(self.query, condition, target_name=target_name, source_name=source_name)
        )

    def _replace(self, merge: Callable[[], MergeBuilder]) -> Rows:
        with self._explained():
            done = merge().when_matched().delete().execute(dry_run=self.run.is_dry_run)
            counts = {
                "rows_deleted": done.rows_deleted,
                "rows_copied": done.rows_copied,
                "files_added": done.files_added,
                "files_removed": done.files_rewritten + done.files_dropped,
                "delete_files_added": done.delete_files_added,
            }
            if self.run.is_dry_run:
                return counted({**counts, "rows_inserted": self.count()}, None, str(done))
            snapshot = self.table.append(self.rows, merge_schema=self.merges_schema, engine=self._engine)
        counts["rows_inserted"] = number_of(snapshot, "added-records")
        counts["files_added"] += files_of(snapshot)["files_added"]
        return counted(counts, snapshot or done.snapshot)

    def count(self) -> int:
        """Return how many new rows there are."""
        return int(self.rows.count()) if is_spark(self.rows) else int(self.rows.num_rows)

    def _planned(self, where: Predicate | str | None) -> Rows:
        explained = self.table.explain_change(where)
        counts = {
            "rows_inserted": self.count(),
            "rows_deleted": self._rows_at(explained.snapshot_id, where),
            "files_removed": explained.plan.files.num_rows,
        }
        return counted(counts, None, str(explained))

    def _rows_at(self, snapshot_id: int | None, where: Predicate | str | None = None) -> int:
        """Count rows of a snapshot; a transaction does not take it for a read of the statement."""
        if snapshot_id is None:
            return 0
        metadata, backend = self.table.metadata, self.run.lake.backend
        name, version = self.table.commit_head.name, resolve_version(metadata, snapshot_id)
        scan = TableScan(backend.reading, name, metadata, version, where)
        return scan.using(self.run.lake.source.sessions).count()

    @contextmanager
    def _explained(self) -> Iterator[None]:
        with load_spark_engine().explained("insert") if is_spark(self.rows) else nullcontext():
            yield

    @property
    def _engine(self) -> Any:
        return None if is_spark(self.rows) else self.run.engine


def is_dynamic(run: Run) -> bool:
    """Return whether the session overwrites only the partitions that get rows."""
    session = run.lake.source.sessions.session
    if run.engine == LOCAL or not has_session(session):
        return False
    mode = str(run.lake.spark.conf.get(_MODE, "static")).lower()
    if mode not in ("static", "dynamic"):
        raise InvalidInput(f"{_MODE} must be static or dynamic, not {mode!r}")
    return mode == "dynamic"


@dataclass(frozen=True)
class ReplaceOn:
    """The condition of REPLACE ON, and what it calls the table and the query.

    alias: of the table. query: the alias of the query, or (`is_relation`) the relation that it reads whole.
    """

    condition: Place
    alias: str | None
    query: Name | None
    is_relation: bool

    def labels(self, run: Run, name: Name) -> tuple[Label, Label]:
        """Return how the condition may refer to the table and to the query."""
        target = label_of(run, name, self.alias)
        if self.query is None:
            free = next(each for each in (SOURCE, "source_rows") if each != target.name.lower())
            return target, Label(free)
        source = label_of(run, self.query, None if self.is_relation else self.query.parts[0])
        if source.name.lower() == target.name.lower():
            raise self.query.place.error(
                f"the table and the query are both called {source.name}", hint="Give them aliases", kind=InvalidInput
            )
        return target, source


def parse_replace_on(cursor: Cursor, alias: Name | None, columns: InsertColumns) -> tuple[ReplaceOn, Place]:
    """Read the condition and the query after REPLACE ON."""
    condition = _read_condition(cursor)
    found = find_subquery(condition)
    if found is not None:
        raise found.error(
            "the condition of REPLACE ON cannot have subqueries", hint="Join it to the query", kind=InvalidInput
        )
    if columns.names is not None:
        place = columns.names[0].place
        raise place.error("REPLACE ON takes no list of columns", hint="Use BY NAME", kind=InvalidInput)
    is_relation = cursor.is_at("table")
    query, name = _read_relation(cursor) if is_relation else _read_query(cursor)
    return ReplaceOn(condition, None if alias is None else alias.parts[0], name, is_relation), query


def _read_condition(cursor: Cursor) -> Place:
    """Read up to the query; FROM may be a part of `IS DISTINCT FROM`, and the query may be in parentheses."""
    start, depth, before = cursor.position, 0, ""
    while not cursor.is_at_end:
        word = cursor.peek()
        if depth == 0 and word in BEGIN_QUERIES and before not in (".", "distinct"):
            break
        if depth == 0 and word == "(" and cursor.peek(1) in BEGIN_QUERIES and _ends_operand(cursor, before, start):
            break
        before = word
        depth += cursor.take().depth
    if cursor.position == start or cursor.is_at_end:
        raise cursor.expected("a condition" if cursor.position == start else "a query")
    return cursor.since(start)


def _ends_operand(cursor: Cursor, before: str, start: int) -> bool:
    """Return whether a value ends before the next token, so that a parenthesis does not belong to it."""
    if cursor.position == start or before in _OPERATORS:
        return False
    last = cursor.token(-1)
    is_literal = last is not None and last.kind not in (LexemeKind.OPERATOR, LexemeKind.WORD)
    return before in (")", "]") or is_literal or (last is not None and last.is_name)


def _read_relation(cursor: Cursor) -> tuple[Place, Name]:
    start = cursor.position
    cursor.expect("table")
    name = cursor.name("the name of a relation")
    cursor.expect_end()
    return cursor.since(start), name


def _read_query(cursor: Cursor) -> tuple[Place, Name | None]:
    """Read a query, and its alias if it is in parentheses."""
    place = cursor.rest()
    inside = cursor.inside(place)
    if not inside.is_at("("):
        return place, None
    query = inside.parenthesized()
    if inside.is_at_end:
        return query, None
    start = inside.position
    alias = parse_alias(inside)
    if alias is None or not inside.is_at_end:
        return place, None  # such as (SELECT ...) UNION ...
    return query, Name((alias,), inside.since(start))
