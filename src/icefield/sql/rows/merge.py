"""MERGE [WITH SCHEMA EVOLUTION] INTO table [alias] USING source [alias] ON condition WHEN ... THEN ...

The source is a table, view, metadata table, branch or DataFrame by name, or a query in parentheses. The clauses are
those of `Table.merge`, in the order in which they are written.
"""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from icefield.catalog.catalog import Kind
from icefield.dml.verbs import MERGE
from icefield.engine.change import When
from icefield.engine.choose import LOCAL
from icefield.engine.rows import is_spark, load_spark_engine
from icefield.errors import IcefieldError, InvalidInput, Unsupported
from icefield.expr.values.scope import SOURCE
from icefield.sql.counts import counts_of_change
from icefield.sql.query.read import open_query, open_relation
from icefield.sql.rows.expressions import Label, Wording, find_subquery
from icefield.sql.rows.spark import starting_spark
from icefield.sql.rows.subqueries import Subqueries
from icefield.sql.rows.target import Target, label_of, parse_alias, parse_target
from icefield.sql.rows.update import Assigned, assigned_columns, parse_assignments
from icefield.sql.session import Rows, Run
from icefield.sql.syntax.cursor import Cursor, Name
from icefield.sql.syntax.place import Place, point_at
from icefield.sql.text.constants import session_zone
from icefield.sql.text.mentions import find_mentions
from icefield.table.merge import MergeBuilder
from icefield.table.table import Table

# Errors about a column or field that a star needs.
_LACKS = re.compile(r"^the source(?:'s .*)? has no (?:column|field) ")
_DELETE, _UPDATE, _INSERT = "delete", "update", "insert"
_ACTIONS = {
    When.MATCHED: (_UPDATE, _DELETE),
    When.NOT_MATCHED: (_INSERT,),
    When.NOT_MATCHED_BY_SOURCE: (_UPDATE, _DELETE),
}


@dataclass(frozen=True)
class Clause:
    """A WHEN clause. assigned: None for all columns, whose star is kept, or for DELETE. place: its first words."""

    when: When
    condition: Place | None
    action: str
    assigned: tuple[Assigned, ...] | None
    place: Place
    star: Place | None = None


@dataclass(frozen=True)
class MergeSource:
    """A source as written.

    name: of a relation. query: without its parentheses. frame: the name of a DataFrame. columns: the names that the
    alias gives to its columns, which are listed at a place of their own.
    """

    place: Place
    name: Name | None = None
    query: Place | None = None
    frame: str | None = None
    alias: str | None = None
    columns: tuple[str, ...] = ()
    listed: Place | None = None

    @property
    def reads_lake(self) -> bool:
        """Whether it may read relations of the lake."""
        return self.name is not None or (self.query is not None and bool(find_mentions(self.query).mentions))

    def open(self, run: Run, cursor: Cursor) -> Any:
        """Return the rows: a scan of a table, a DataFrame or Arrow data, under the names that an alias gives."""
        rows = self._open(run, cursor)
        if not self.columns:
            return rows
        known = rows.columns if is_spark(rows) else rows.column_names
        if len(known) != len(self.columns):
            raise (self.listed or self.place).error(
                f"the source has {len(known)} columns, but its alias names {len(self.columns)}", kind=InvalidInput
            )
        return rows.toDF(*self.columns) if is_spark(rows) else rows.rename_columns(list(self.columns))

    def _open(self, run: Run, cursor: Cursor) -> Any:
        if self.frame is not None:
            if self.frame not in run.frames:
                known = ", ".join(run.frames) or "none"
                raise cursor.error(f"there is no DataFrame {self.frame!r} (given: {known})", self.place)
            return run.frames[self.frame]
        if self.query is not None:
            return open_query(run, self.query)
        assert self.name is not None
        found = None if run.is_hidden(self.name) else run.find(self.name)
        needs_frame = bool(self.columns) and run.engine != LOCAL
        if found is None or found.kind is not Kind.TABLE or found.inspects is not None or needs_frame:
            return open_relation(run, self.name)
        scan = run.open(found.name).scan(as_of=found.ref)
        return scan.to_arrow().read_all() if run.engine == LOCAL else scan


@dataclass(frozen=True)
class Merge:
    """A MERGE."""

    cursor: Cursor
    target: Target
    source: MergeSource
    on: Place
    clauses: tuple[Clause, ...]
    merges_schema: bool

    def run(self, run: Run) -> Rows:
        """Merge the source into the table, and return what was done."""
        values = [each.value for clause in self.clauses for each in clause.assigned or ()]
        reads = self.source.reads_lake
        with Subqueries.opened(run, self.target, MERGE, self.cursor, values, more=reads) as opened, self._at_stars():
            # What fails for a row of a DataFrame of the caller is Spark's to tell; the query is of the statement.
            is_query = self.source.query is not None and run.engine != LOCAL
            with load_spark_engine().explained("merge") if is_query else nullcontext():
                result = starting_spark(
                    run,
                    lambda: self._builder(opened).execute(dry_run=run.is_dry_run),
                    *self._places,
                    values=self._shown,
                    written=opened.written,
                )
        return counts_of_change(result)

    def explain(self, run: Run, mode: str) -> str:
        """Return which files of the table would be read, and what prunes the others; only source keys are read."""
        with Subqueries.opened(run, self.target, MERGE, self.cursor, (), more=self.source.reads_lake) as opened:
            return str(starting_spark(run, lambda: self._builder(opened).explain(), *self._places))

    def _builder(self, opened: Subqueries) -> MergeBuilder:
        run = opened.run
        table = run.table(self.target.name, "merge into")
        labels = self._labels(run)
        wording = Wording(labels, zone=session_zone(run))
        builder = table.merge(
            self.source.open(run, self.cursor),
            opened.text(self.on, wording),
            merge_schema=self.merges_schema,
            target_name=labels[0].name,
            source_name=labels[1].name,
            engine=run.engine,
        )
        for clause in self.clauses:
            builder = self._with(builder, clause, _Values(opened, wording, table))
        return builder

    def _with(self, builder: MergeBuilder, clause: Clause, values: "_Values") -> MergeBuilder:
        condition = None if clause.condition is None else values.opened.text(clause.condition, values.wording)
        if clause.when is When.NOT_MATCHED:
            inserted = builder.when_not_matched(condition)
            return inserted.insert_all() if clause.assigned is None else inserted.insert(values.of(clause.assigned))
        is_matched = clause.when is When.MATCHED
        begun = builder.when_matched(condition) if is_matched else builder.when_not_matched_by_source(condition)
        if clause.action == _DELETE:
            return begun.delete()
        return begun.update_all() if clause.assigned is None else begun.update(values.of(clause.assigned))

    def _labels(self, run: Run) -> tuple[Label, Label]:
        """Return what expressions call the two sides: two different names, or names that only we know."""
        target, name, alias = self.target.label(run), self.source.name, self.source.alias
        if name is None:
            free = next(each for each in (SOURCE, "source_rows") if each != target.name.lower())
            source = Label(free if alias is None else alias)
        else:
            source = label_of(run, name, alias)
        if source.name.lower() != target.name.lower():
            return target, source
        if self.target.alias is None and alias is None and source.qualifiers != target.qualifiers:
            return _with_namespace(target), _with_namespace(source)
        raise self.source.place.error(
            f"the table and the source are both called {source.name}", hint="Give them aliases", kind=InvalidInput
        )

    @property
    def _places(self) -> list[Place]:
        """The expressions, columns and stars, in the order in which errors look for names."""
        found = [self.on]
        for clause in self.clauses:
            found += [] if clause.condition is None else [clause.condition]
            found += [each.value for each in clause.assigned or ()]
        return found

    @property
    def _shown(self) -> dict[str, Place]:
        """The values that are assigned, by column."""
        assigned = [each for clause in self.clauses for each in clause.assigned or ()]
        return {each.column.parts[-1].lower(): each.value for each in assigned}

    @contextmanager
    def _at_stars(self) -> Iterator[None]:
        """Let errors about columns that the source lacks point at the star that needs them."""
        stars = [clause.star for clause in self.clauses if clause.star is not None]
        try:
            yield
        except IcefieldError as error:
            if stars and _LACKS.search(error.message):
                error.excerpt = None
                point_at(error, stars[0])
            raise


@dataclass(frozen=True)
class _Values:
    """The assignments of clauses for the engine."""

    opened: Subqueries
    wording: Wording
    table: Table

    def of(self, assigned: Sequence[Assigned]) -> dict[str, Any]:
        names = assigned_columns([each.column for each in assigned], self.table.schema, self.wording.labels[0])
        return {name: self.opened.text(each.value, self.wording) for name, each in zip(names, assigned, strict=True)}


def _with_namespace(label: Label) -> Label:
    return replace(label, name=".".join(label.qualifiers[-1]))


def parse_merge(cursor: Cursor) -> Merge:
    """Parse MERGE."""
    cursor.expect("merge")
    merges_schema = cursor.accept("with", "schema", "evolution")
    cursor.expect("into")
    target = parse_target(cursor, "merge into")
    cursor.expect("using")
    source = parse_source(cursor)
    cursor.expect("on")
    on = cursor.until("when", what="a condition")
    if cursor.is_at_end:
        raise cursor.error("MERGE has no WHEN clause", hint="Add WHEN MATCHED THEN, WHEN NOT MATCHED THEN or both")
    clauses: list[Clause] = []
    while not cursor.is_at_end:
        clauses.append(_parse_clause(cursor))
    _check_order(clauses)
    for condition in (on, *(clause.condition for clause in clauses)):
        _refuse_subquery(condition)
    return Merge(cursor, target, source, on, tuple(clauses), merges_schema)


def _parse_clause(cursor: Cursor) -> Clause:
    start = cursor.position
    cursor.expect("when")
    when = _parse_when(cursor)
    place = cursor.since(start)
    condition = cursor.until("then", what="a condition") if cursor.accept("and") else None
    cursor.expect("then")
    action = cursor.expect_any(*_ACTIONS[when])
    if action == _DELETE:
        return Clause(when, condition, action, None, place)
    begin = cursor.position
    assigned = _parse_update(cursor, when) if action == _UPDATE else _parse_insert(cursor)
    star = None if assigned is not None else cursor.since(begin)
    return Clause(when, condition, action, assigned, place, star)


def _parse_when(cursor: Cursor) -> When:
    if cursor.accept("matched"):
        return When.MATCHED
    if not cursor.accept("not"):
        cursor.expect("!")
    cursor.expect("matched")
    if cursor.accept("by"):
        return When.NOT_MATCHED_BY_SOURCE if cursor.expect_any("source", "target") == "source" else When.NOT_MATCHED
    return When.NOT_MATCHED


def _parse_update(cursor: Cursor, when: When) -> tuple[Assigned, ...] | None:
    cursor.expect("set")
    star = cursor.place
    if not cursor.accept("*"):
        return parse_assignments(cursor, "when")
    if when is When.NOT_MATCHED_BY_SOURCE:
        raise cursor.error("there is no source row to take all columns from", star, hint="Name the columns to set")
    return None


def _parse_insert(cursor: Cursor) -> tuple[Assigned, ...] | None:
    if cursor.accept("*"):
        return None
    columns = cursor.names("a column to insert")
    cursor.expect("values")
    start = cursor.position
    inside = cursor.inside(cursor.parenthesized())
    values: list[Place] = []
    while not inside.is_at_end:
        values.append(inside.until(","))
        inside.accept(",")
    if len(columns) != len(values):
        message = f"INSERT has {len(columns)} columns, but {len(values)} values"
        raise cursor.error(message, cursor.since(start))
    return tuple(Assigned(column, value) for column, value in zip(columns, values, strict=True))


def _refuse_subquery(condition: Place | None) -> None:
    found = None if condition is None else find_subquery(condition)
    if found is not None:
        raise found.error(
            "the conditions of MERGE cannot have subqueries", hint="Join it to the source first", kind=InvalidInput
        )


def _check_order(clauses: Sequence[Clause]) -> None:
    """Refuse a clause that never applies, because one before it applies to every row."""
    for when in When:
        own = [clause for clause in clauses if clause.when is when]
        for clause, after in pairwise(own):
            if clause.condition is None:
                raise after.place.error(
                    f"this clause never applies: a clause {when.upper()} without a condition is before it",
                    hint="Put the clause without a condition last",
                    kind=InvalidInput,
                )


def parse_source(cursor: Cursor) -> MergeSource:
    """Read the source of a MERGE, and its alias."""
    place = cursor.place
    if cursor.is_at("("):
        query = cursor.parenthesized()
        source = MergeSource(place, query=query)
    elif cursor.accept("{"):
        frame = cursor.identifier("the name of a DataFrame")
        cursor.expect("}")
        source = MergeSource(cursor.since(place.start), frame=frame)
    else:
        name = cursor.name("the source")
        source = MergeSource(name.place, name=name)
    if cursor.peek() in ("version", "timestamp", "for") and (cursor.is_at("for") or cursor.peek(1) == "as"):
        raise cursor.error(
            "MERGE takes a source at its newest version",
            hint="Write it as a query: USING (SELECT * FROM ... VERSION AS OF ...)",
            kind=Unsupported,
        )
    alias = parse_alias(cursor)
    if alias is None or not cursor.is_at("("):
        return replace(source, alias=alias)
    start = cursor.position
    columns = _parse_aliases(cursor)
    return replace(source, alias=alias, columns=columns, listed=cursor.since(start))


def _parse_aliases(cursor: Cursor) -> tuple[str, ...]:
    """Read the names that an alias gives to the columns of the source."""
    inside = cursor.inside(cursor.parenthesized())
    columns: list[str] = []
    while not columns or inside.accept(","):
        columns.append(inside.identifier("the name of a column"))
    inside.expect_end()
    return tuple(columns)
