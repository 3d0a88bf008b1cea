"""Temporary views, which are queries with a name, and cached tables, whose rows Spark keeps; both end with the handle.

A view keeps its text, and is read again at each use: it follows the tables that it names, as in Iceberg's runtime.
Names of one part are bound to the namespace that was current when the view was made. A cached table is used by queries
of the version that was cached, and by no other: a commit makes it useless, not wrong.
Raises AlreadyExists, NotFound, Unsupported.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from icefield.engine.choose import LOCAL
from icefield.engine.rows import load_spark_engine
from icefield.errors import AlreadyExists, InvalidInput, NotFound, Unsupported
from icefield.expr.query.tokens import quoted
from icefield.sql.query.names import QueryNames, Resolution
from icefield.sql.query.read import Opening, cache_key, open_query
from icefield.sql.query.references import Reference
from icefield.sql.query.spark_statements import SparkStatement, parse_create_function, parse_left_to_spark
from icefield.sql.session import GLOBAL, NOTHING, Rows, Run, Statement
from icefield.sql.syntax.cursor import Cursor, Name
from icefield.sql.syntax.place import Place
from icefield.sql.syntax.strings import literal_of
from icefield.sql.text.mentions import Part
from icefield.sql.text.rewrite import Edit, rewrite


@dataclass(frozen=True)
class CreateTemporaryView:
    """CREATE [OR REPLACE] [GLOBAL] TEMPORARY VIEW. columns: new names for the columns of the query."""

    name: Name
    is_global: bool
    query: Place
    columns: tuple[str, ...] = ()
    replaces: bool = False
    is_optional: bool = False

    def run(self, run: Run) -> Rows:
        """Check the query, and keep its text."""
        key = f"{GLOBAL}.{self.name.parts[-1]}".lower() if self.is_global else self.name.parts[-1].lower()
        views = run.session.temporary_views
        if key in views and not self.replaces:
            if self.is_optional:
                return NOTHING
            raise self.name.place.error(
                f"the temporary view {self.name} exists", hint="Use CREATE OR REPLACE", kind=AlreadyExists
            )
        if run.engine != LOCAL:
            open_query(run, self.query)  # what is wrong with it is said now
        names = Resolution(run).resolve(self.query, inside=(key,))
        views[key] = self._with_columns(stored_text(run, names))
        return NOTHING

    def _with_columns(self, text: str) -> str:
        if not self.columns:
            return text
        listed = ", ".join(quoted(each) for each in self.columns)
        return f"SELECT * FROM (\n{text}\n) AS {quoted(self.name.parts[-1])}({listed})"  # noqa: S608 - it is a view


def parse_create(cursor: Cursor, start: int, *, replaces: bool = False) -> Statement:
    """Parse [GLOBAL] TEMPORARY VIEW, or what else is temporary in Spark. start: where the statement begins."""
    is_global = cursor.accept("global")
    cursor.expect_any("temporary", "temp")
    if cursor.is_at("function"):
        return parse_create_function(cursor, start)
    if not cursor.accept("view"):
        return parse_left_to_spark(cursor, start)
    is_optional = cursor.accept("if", "not", "exists")
    name = cursor.name("the name of a view")
    if len(name.parts) > 1 and not (len(name.parts) == 2 and is_global and name.parts[0].lower() == GLOBAL):
        raise name.place.error(
            "a temporary view is in no namespace", hint="Give it a name of one part", kind=InvalidInput
        )
    listed = cursor.parenthesized() if cursor.is_at("(") else None
    if cursor.is_at("using"):
        return parse_left_to_spark(cursor, start)
    columns = () if listed is None else _columns(cursor.inside(listed))
    while cursor.peek() in ("comment", "tblproperties"):
        if cursor.accept("comment"):
            cursor.string()
        else:
            cursor.take()
            cursor.parenthesized()
    cursor.expect("as")
    return CreateTemporaryView(name, is_global, cursor.rest(), columns, replaces, is_optional)


def drop_temporary(run: Run, name: Name) -> bool:
    """Drop a temporary view; return whether there was one."""
    key = ".".join(name.parts).lower()
    run.session.cached.pop(key, None)
    return run.session.temporary_views.pop(key, None) is not None


def stored_text(run: Run, names: QueryNames) -> str:
    """Return a query as text that means the same later: with whole names, and literals instead of markers."""
    if names.given:
        raise names.given[0].mention.place.error(
            "a temporary view keeps its text, so it cannot read a DataFrame",
            hint="Make it a temporary view of Spark first: df.createOrReplaceTempView",
            kind=Unsupported,
        )
    bound = [
        _whole_name(each) for each in names.references if len(each.parts) == 1 or each.mention.argument is not None
    ]
    values = [edit for edit in _markers(run, names) if not any(name.start <= edit.start < name.end for name in bound)]
    return rewrite(names.origin, [*bound, *values]).text


def _whole_name(reference: Reference) -> Edit:
    """Return the edit that writes a name with its namespace."""
    name, place = reference.relation.name, reference.mention.name_place
    parts = (*name.namespace, name.name) if len(reference.parts) == 1 else reference.parts
    return Edit(place.start, place.end, ".".join(quoted(part) for part in parts))


def _markers(run: Run, names: QueryNames) -> list[Edit]:
    """Return edits that write the values of markers."""
    found: list[Edit] = []
    cursor = Cursor(names.origin.source, names.origin.start, names.origin.end, run.parameters)
    while not cursor.is_at_end:
        start, after = cursor.position, cursor.token(1)
        # A colon is also in the types of structs.
        is_named = cursor.is_at(":") and after is not None and after.name in run.parameters.named
        if is_named or cursor.is_at("?"):
            value = cursor.parameter()
            found.append(Edit(start, cursor.since(start).end, literal_of(value)))
        else:
            cursor.take()
    return found


def _columns(cursor: Cursor) -> tuple[str, ...]:
    """Parse the names of columns, each possibly with a comment."""
    names: list[str] = []
    while not names or cursor.accept(","):
        names.append(cursor.identifier("the name of a column"))
        if cursor.accept("comment"):
            cursor.string()
    cursor.expect_end()
    return tuple(names)


@dataclass(frozen=True)
class CacheTable:
    """CACHE [LAZY] TABLE. query: what a new temporary view of this name reads."""

    name: Name
    is_lazy: bool
    query: Place | None
    statement: Place

    def run(self, run: Run) -> Rows | Any:
        """Keep the rows, at once unless it is lazy."""
        if self.query is not None:
            CreateTemporaryView(self.name, is_global=False, query=self.query).run(run)
        opening = Opening(run)
        names = opening.names(self.name.place, Part.RELATION)
        key = cache_key(names)
        if key is None:
            return SparkStatement(self.statement).run(run)
        if key not in run.session.cached:
            frame = opening.open(names)
            run.session.cached[key] = opening.sql.keep(frame, is_lazy=self.is_lazy)
        return NOTHING


@dataclass(frozen=True)
class UncacheTable:
    """UNCACHE TABLE [IF EXISTS]."""

    name: Name
    is_optional: bool
    statement: Place

    def run(self, run: Run) -> Rows | Any:
        """Let the rows go, of all versions."""
        found = run.find(self.name)
        temporary = run.find_temporary(self.name.parts)
        owner = temporary if temporary is not None else None if found is None else str(found.name)
        if owner is None:
            return SparkStatement(self.statement).run(run)
        keys = [key for key in run.session.cached if key == owner or key.startswith(f"{owner}@")]
        if not keys and not self.is_optional:
            raise self.name.place.error(f"{self.name} is not cached", kind=NotFound)
        for key in keys:
            load_spark_engine().sql(run.lake.spark).release(run.session.cached.pop(key))
        return NOTHING


@dataclass(frozen=True)
class ClearCache:
    """CLEAR CACHE."""

    statement: Place

    def run(self, run: Run) -> Rows | Any:
        """Let all rows go."""
        run.session.cached.clear()
        return SparkStatement(self.statement).run(run)


def parse_cache(cursor: Cursor) -> CacheTable:
    """Parse CACHE TABLE."""
    start = cursor.position
    cursor.expect("cache")
    is_lazy = cursor.accept("lazy")
    cursor.expect("table")
    name = cursor.name("the name of a table")
    if cursor.accept("options"):
        cursor.parenthesized()
    has_query = cursor.accept("as") or not cursor.is_at_end
    query = cursor.rest() if has_query else None
    return CacheTable(name, is_lazy, query, cursor.since(start))


def parse_uncache(cursor: Cursor) -> UncacheTable:
    """Parse UNCACHE TABLE."""
    start = cursor.position
    cursor.expect("uncache", "table")
    is_optional = cursor.accept("if", "exists")
    name = cursor.name("the name of a table")
    cursor.expect_end()
    return UncacheTable(name, is_optional, cursor.since(start))


def parse_clear(cursor: Cursor) -> ClearCache:
    """Parse CLEAR CACHE."""
    start = cursor.position
    cursor.expect("clear", "cache")
    cursor.expect_end()
    return ClearCache(cursor.since(start))


CACHE_STATEMENTS: Mapping[str, Callable[[Cursor], Statement]] = {
    "cache": parse_cache,
    "uncache": parse_uncache,
    "clear": parse_clear,
}
