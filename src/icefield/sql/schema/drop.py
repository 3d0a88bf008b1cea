"""DROP TABLE, UNDROP TABLE and DROP VIEW. Raises NoSuchTable, NotFound, AlreadyExists, Unsupported."""

from dataclasses import dataclass

from icefield.catalog.catalog import Kind
from icefield.errors import IcefieldError, NoSuchTable, Unsupported
from icefield.sql.query.temporary_views import drop_temporary
from icefield.sql.schema.change import refuse_in_transaction
from icefield.sql.schema.types import parse_text
from icefield.sql.session import NOTHING, Relation, Rows, Run
from icefield.sql.syntax.cursor import Cursor, Name
from icefield.sql.syntax.place import Place, pointing_at


@dataclass(frozen=True)
class DropTable:
    """DROP TABLE. The files stay; with PURGE they are removed when the time to undrop the table is over."""

    name: Name
    if_exists: bool
    purges: bool

    def run(self, run: Run) -> Rows:
        """Drop the table."""
        refuse_in_transaction(run, self.name.place, "drop tables")
        found = _find(run, self.name, Kind.TABLE)
        if found is None and self.if_exists:
            return NOTHING
        if found is None:
            raise run.missing(self.name, "table")
        with pointing_at(self.name.place):
            run.lake.drop_table(str(found.name), purge=self.purges)
        return NOTHING


@dataclass(frozen=True)
class UndropTable:
    """UNDROP TABLE: the newest table that was dropped under a name, or one by its uuid, as a text."""

    dropped: str
    place: Place
    new: Name | None

    def run(self, run: Run) -> Rows:
        """Restore the table."""
        refuse_in_transaction(run, self.place, "restore tables")
        with pointing_at(self.place):
            run.lake.undrop(self.dropped, to=None if self.new is None else str(run.new_name(self.new)))
        return NOTHING


@dataclass(frozen=True)
class DropView:
    """DROP VIEW, of the lake or of the session."""

    name: Name
    if_exists: bool

    def run(self, run: Run) -> Rows:
        """Drop the view."""
        if drop_temporary(run, self.name):
            return NOTHING
        refuse_in_transaction(run, self.name.place, "drop views")
        found = _find(run, self.name, Kind.VIEW)
        if found is None and self.if_exists:
            return NOTHING
        if found is None:
            raise run.missing(self.name, "view")
        with pointing_at(self.name.place):
            run.lake.drop_view(str(found.name))
        return NOTHING


def parse_drop_table(cursor: Cursor) -> DropTable:
    """Parse what follows DROP."""
    cursor.expect("table")
    if_exists = cursor.accept("if", "exists")
    name = cursor.name("the name of a table")
    purges = cursor.accept("purge")
    cursor.expect_end()
    return DropTable(name, if_exists, purges)


def parse_drop_view(cursor: Cursor) -> DropView:
    """Parse what follows DROP."""
    cursor.expect("view")
    if_exists = cursor.accept("if", "exists")
    name = cursor.name("the name of a view")
    cursor.expect_end()
    return DropView(name, if_exists)


def parse_undrop(cursor: Cursor) -> UndropTable:
    """Parse UNDROP TABLE name [AS name]."""
    cursor.expect("undrop", "table")
    place, token = cursor.place, cursor.token()
    is_name = token is not None and token.is_name
    dropped = str(cursor.name("the name or the uuid of a table")) if is_name else parse_text(cursor, "a uuid")
    new = cursor.name("the new name") if cursor.accept("as") else None
    cursor.expect_end()
    return UndropTable(dropped, cursor.since(place.start) if new is None else place, new)


def _find(run: Run, name: Name, kind: Kind) -> Relation | None:
    """Find what to drop; refuse what is of another kind."""
    found = run.find_changed(name, "drop")
    if found is None:
        return None
    if found.inspects is not None or found.ref is not None:
        raise name.place.error(f"cannot drop {name}: it belongs to the table {found.name}", kind=Unsupported)
    if found.kind is not kind:
        raise _other_kind(name, found)
    return found


def _other_kind(name: Name, found: Relation) -> IcefieldError:
    is_view = found.kind is Kind.VIEW
    return name.place.error(
        f"{found.name} is a {found.kind.value}, not a {'table' if is_view else 'view'}",
        hint=f"Use DROP {'VIEW' if is_view else 'TABLE'}",
        kind=NoSuchTable,
    )
