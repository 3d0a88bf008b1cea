"""CACHE TABLE, UNCACHE TABLE and CLEAR CACHE: rows that Spark keeps.

A cached table is used by queries of the version that was cached, and by no other: a commit makes it useless, not wrong.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from icefield.errors import NotFound
from icefield.sql.query.mentions import Part
from icefield.sql.query.read import Opening, cache_key
from icefield.sql.query.references import find_temporary
from icefield.sql.query.spark_statements import SparkStatement
from icefield.sql.query.temporary_views import CreateTemporaryView
from icefield.sql.session import NOTHING, Rows, Run, Statement
from icefield.sql.syntax.cursor import Cursor, Name
from icefield.sql.syntax.place import Place


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
            run.session.cached[key] = opening.open(names).persist()
        if not self.is_lazy:
            run.session.cached[key].count()
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
        temporary = find_temporary(run, self.name.parts)
        owner = temporary if temporary is not None else None if found is None else str(found.name)
        if owner is None:
            return SparkStatement(self.statement).run(run)
        keys = [key for key in run.session.cached if key == owner or key.startswith(f"{owner}@")]
        if not keys and not self.is_optional:
            raise self.name.place.error(f"{self.name} is not cached", kind=NotFound)
        for key in keys:
            run.session.cached.pop(key).unpersist()
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
