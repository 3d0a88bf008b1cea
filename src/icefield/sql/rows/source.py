"""The source of a MERGE: a relation by name, a DataFrame `{name}`, or a query in parentheses. Raises InvalidInput."""

from dataclasses import dataclass
from typing import Any

from icefield.catalog.catalog import Kind
from icefield.engine.local import LOCAL
from icefield.errors import Unsupported
from icefield.sql.query.mentions import find_mentions
from icefield.sql.query.read import open_query, open_relation
from icefield.sql.rows.target import parse_alias
from icefield.sql.session import Run
from icefield.sql.syntax.cursor import Cursor, Name
from icefield.sql.syntax.place import Place


@dataclass(frozen=True)
class MergeSource:
    """A source as written. name: of a relation. query: without its parentheses. frame: the name of a DataFrame."""

    place: Place
    name: Name | None = None
    query: Place | None = None
    frame: str | None = None
    alias: str | None = None

    @property
    def reads_lake(self) -> bool:
        """Whether it may read relations of the lake."""
        return self.name is not None or (self.query is not None and bool(find_mentions(self.query).mentions))

    def open(self, run: Run, cursor: Cursor) -> Any:
        """Return the rows: a scan of a table, or a DataFrame."""
        if self.frame is not None:
            if self.frame not in run.frames:
                known = ", ".join(run.frames) or "none"
                raise cursor.error(f"there is no DataFrame {self.frame!r} (given: {known})", self.place)
            return run.frames[self.frame]
        if self.query is not None:
            return open_query(run, self.query)
        assert self.name is not None
        found = run.find(self.name) if self.name.parts[-1].lower() not in run.session.temporary_views else None
        if found is None or found.kind is not Kind.TABLE or found.inspects is not None:
            return open_relation(run, self.name)
        scan = run.open(found.name).scan(as_of=found.ref)
        return scan.to_arrow().read_all() if run.engine == LOCAL else scan


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
    if alias is not None and cursor.is_at("("):
        raise cursor.error("a source cannot have aliases of columns", hint="Give them in a query", kind=Unsupported)
    return MergeSource(source.place, source.name, source.query, source.frame, alias)
