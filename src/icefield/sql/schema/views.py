"""CREATE VIEW and ALTER VIEW. The query of a view is kept as it is written.

Raises AlreadyExists, NoSuchTable, InvalidInput, Unsupported, NeedsSpark.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from icefield.catalog.catalog import Kind, refuse_taken
from icefield.engine.choose import LOCAL
from icefield.errors import InvalidInput, NeedsSpark, NoSuchTable, Unsupported
from icefield.model.names import TableName
from icefield.sql.namespaces import has_namespace, missing_namespace
from icefield.sql.query.names import Resolution
from icefield.sql.schema.change import refuse_in_transaction
from icefield.sql.schema.properties import COMMENT, parse_keys, parse_properties
from icefield.sql.schema.types import parse_comment, parse_text
from icefield.sql.session import NOTHING, Rows, Run, Statement
from icefield.sql.syntax.cursor import Cursor, Name
from icefield.sql.syntax.place import Place, pointing_at


@dataclass(frozen=True)
class CreateView:
    """CREATE VIEW, and ALTER VIEW AS, which replaces the query of a view that exists."""

    name: Name
    query: Place
    columns: Mapping[str, str | None] | None = None
    properties: Mapping[str, str] = field(default_factory=dict)
    if_not_exists: bool = False
    replaces: bool = False
    creates: bool = True

    def run(self, run: Run) -> Rows:
        """Create or replace the view."""
        refuse_in_transaction(run, self.name.place, "create or replace views")
        with pointing_at(self.name.place):
            view = run.new_name(self.name) if self.creates else find_view(run, self.name)
            found = run.lake.catalog.find(view)
            if found is not None and (found.kind is Kind.TABLE or not (self.if_not_exists or self.replaces)):
                refuse_taken(view, found)
        if found is not None and self.if_not_exists:
            return NOTHING
        if found is None and not has_namespace(run, view.namespace):
            raise missing_namespace(run, view.namespace, self.name.place)
        if run.engine == LOCAL:
            raise self.query.error("the columns of a view", kind=NeedsSpark)
        self._check_query(run)
        with pointing_at(self.query):
            run.lake.create_view(
                str(view),
                self.query.text,
                columns=self.columns,
                default_namespace=".".join(run.session.namespace) or None,
                properties=dict(self.properties),
                replace=self.replaces,
            )
        return NOTHING

    def _check_query(self, run: Run) -> None:
        """Refuse what others could not read: parameters, DataFrames and temporary views of this session."""
        cursor = Cursor(self.query.source, self.query.start, self.query.end)
        while not cursor.is_at_end:
            if cursor.is_at_parameter:
                raise cursor.error("a view keeps its text, so it has no parameters")
            cursor.take()
        names = Resolution(run).resolve(self.query)
        for given in names.given:
            raise given.mention.place.error("a view cannot read a DataFrame of this session", kind=Unsupported)
        for temporary in names.temporary:
            raise temporary.mention.place.error(
                f"a view of the lake cannot read the temporary view {'.'.join(temporary.parts)}",
                hint="Create a temporary view, or name the tables themselves",
                kind=InvalidInput,
            )
        for name in names.left:
            raise run.missing(name)


@dataclass(frozen=True)
class ChangeView:
    """ALTER VIEW SET and UNSET TBLPROPERTIES, and COMMENT ON VIEW."""

    name: Name
    updates: Mapping[str, str] = field(default_factory=dict)
    removals: tuple[str, ...] = ()

    def run(self, run: Run) -> Rows:
        """Set and remove properties."""
        refuse_in_transaction(run, self.name.place, "change views")
        view = find_view(run, self.name)
        with pointing_at(self.name.place):
            run.lake.view(str(view)).set_properties(self.updates, removals=self.removals)
        return NOTHING


@dataclass(frozen=True)
class RenameView:
    """ALTER VIEW RENAME TO; a name of one part stays in the namespace of the view."""

    name: Name
    new: Name

    def run(self, run: Run) -> Rows:
        """Rename the view."""
        refuse_in_transaction(run, self.name.place, "rename views")
        view = find_view(run, self.name)
        parts = self.new.parts if len(self.new.parts) > 1 else (*view.namespace, *self.new.parts)
        with pointing_at(self.new.place):
            run.lake.rename_view(str(view), str(run.new_name(Name(parts, self.new.place))))
        return NOTHING


def find_view(run: Run, name: Name) -> TableName:
    """Return the view that a statement names."""
    found = run.find_changed(name, "change")
    if found is None:
        raise run.missing(name, "view")
    if found.kind is not Kind.VIEW or found.inspects is not None:
        raise name.place.error(f"{name} is not a view", hint="Use the statements of tables", kind=NoSuchTable)
    return found.name


def parse_create_view(cursor: Cursor, *, replaces: bool) -> Statement:
    """Parse what follows CREATE, or CREATE OR REPLACE."""
    cursor.expect("view")
    place = cursor.place
    if_not_exists = cursor.accept("if", "not", "exists")
    if if_not_exists and replaces:
        raise place.error("a view is created OR REPLACEd, or IF NOT EXISTS, not both", kind=InvalidInput)
    name = cursor.name("the name of a view")
    columns = _parse_columns(cursor) if cursor.is_at("(") else None
    properties: dict[str, str] = {}
    while not cursor.accept("as"):
        if cursor.accept("comment"):
            properties[COMMENT] = parse_text(cursor, "a comment")
        elif cursor.accept("tblproperties"):
            properties.update(parse_properties(cursor).values)
        elif cursor.is_at("with", "schema"):
            raise cursor.error("a view has the columns that it is created with", kind=Unsupported)
        else:
            raise cursor.expected("AS, COMMENT or TBLPROPERTIES")
    return CreateView(name, cursor.rest(), columns, properties, if_not_exists, replaces)


def parse_alter_view(cursor: Cursor) -> Statement:
    """Parse what follows ALTER."""
    cursor.expect("view")
    name = cursor.name("the name of a view")
    statement: Statement
    if cursor.accept("rename"):
        cursor.expect("to")
        statement = RenameView(name, cursor.name("the new name"))
    elif cursor.accept("set"):
        cursor.expect("tblproperties")
        statement = ChangeView(name, parse_properties(cursor).values)
    elif cursor.accept("unset"):
        cursor.expect("tblproperties")
        cursor.accept("if", "exists")
        statement = ChangeView(name, removals=parse_keys(cursor))
    elif cursor.accept("as") or cursor.peek() in ("select", "with", "from", "values", "table", "("):
        statement = CreateView(name, cursor.rest(), replaces=True, creates=False)
    else:
        raise cursor.expected("AS, RENAME, SET or UNSET")
    cursor.expect_end()
    return statement


def _parse_columns(cursor: Cursor) -> dict[str, str | None]:
    columns: dict[str, str | None] = {}
    cursor.expect("(")
    while not columns or cursor.accept(","):
        place, name = cursor.place, cursor.identifier("the name of a column")
        if name.lower() in {known.lower() for known in columns}:
            raise place.error(f"the column {name!r} is there twice", kind=InvalidInput)
        columns[name] = parse_comment(cursor)
    cursor.expect(")")
    return columns
