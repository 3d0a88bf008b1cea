"""CREATE, ALTER and DROP NAMESPACE; DATABASE and SCHEMA mean the same.

Raises AlreadyExists, NoSuchNamespace, NamespaceNotEmpty, InvalidInput, Unsupported.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from icefield.catalog.catalog import Kind, check_new_namespace, walk_namespaces
from icefield.errors import NamespaceNotEmpty, Unsupported
from icefield.model.names import Namespace
from icefield.sql.namespaces import find_namespace, has_namespace, open_namespace, parse_namespace_word
from icefield.sql.schema.change import refuse_in_transaction
from icefield.sql.schema.properties import COMMENT, parse_keys, parse_properties
from icefield.sql.schema.types import parse_text
from icefield.sql.session import NOTHING, Rows, Run, Statement
from icefield.sql.syntax.cursor import Cursor, Name
from icefield.sql.syntax.place import pointing_at

LOCATION = "location"
_PROPERTIES = ("properties", "dbproperties")


@dataclass(frozen=True)
class CreateNamespace:
    """CREATE NAMESPACE."""

    name: Name
    if_not_exists: bool
    properties: Mapping[str, str]

    def run(self, run: Run) -> Rows:
        """Create the namespace."""
        refuse_in_transaction(run, self.name.place, "create namespaces")
        if self.if_not_exists and find_namespace(run, self.name) is not None:
            return NOTHING
        with pointing_at(self.name.place):
            parts = _new_parts(run, self.name)
            check_new_namespace(parts, self.properties)
            run.lake.create_namespace(".".join(parts), dict(self.properties))
        return NOTHING


@dataclass(frozen=True)
class ChangeNamespace:
    """ALTER NAMESPACE, and COMMENT ON NAMESPACE."""

    name: Name
    updates: Mapping[str, str] = field(default_factory=dict)
    removals: tuple[str, ...] = ()

    def run(self, run: Run) -> Rows:
        """Set and remove properties."""
        refuse_in_transaction(run, self.name.place, "change namespaces")
        space = open_namespace(run, self.name)
        with pointing_at(self.name.place):
            run.lake.update_namespace_properties(".".join(space), removals=self.removals, updates=self.updates)
        return NOTHING


@dataclass(frozen=True)
class DropNamespace:
    """DROP NAMESPACE; CASCADE drops what is in it first. Tables can be restored by UNDROP TABLE."""

    name: Name
    if_exists: bool
    cascades: bool

    def run(self, run: Run) -> Rows:
        """Drop the namespace."""
        refuse_in_transaction(run, self.name.place, "drop namespaces")
        found = find_namespace(run, self.name) if self.if_exists else open_namespace(run, self.name)
        if found is None:
            return NOTHING
        with pointing_at(self.name.place):
            if self.cascades:
                _empty(run, found)
            # A namespace that nobody created ends with the last table in it.
            if not self.cascades or has_namespace(run, found):
                self._drop(run, found)
        return NOTHING

    def _drop(self, run: Run, found: Namespace) -> None:
        try:
            run.lake.drop_namespace(".".join(found))
        except NamespaceNotEmpty as error:
            raise NamespaceNotEmpty(error.message, hint="DROP NAMESPACE ... CASCADE drops what is in it") from error


def parse_create_namespace(cursor: Cursor) -> Statement:
    """Parse what follows CREATE."""
    parse_namespace_word(cursor)
    if_not_exists = cursor.accept("if", "not", "exists")
    name = cursor.name("the name of a namespace")
    properties: dict[str, str] = {}
    while not cursor.is_at_end:
        if cursor.accept("comment"):
            properties[COMMENT] = parse_text(cursor, "a comment")
        elif cursor.accept("location"):
            properties[LOCATION] = parse_text(cursor, "a location")
        elif cursor.is_at("default"):
            raise cursor.error("Iceberg tables have no collations", kind=Unsupported)
        else:
            cursor.expect("with")
            cursor.expect_any(*_PROPERTIES)
            properties.update(parse_properties(cursor).values)
    return CreateNamespace(name, if_not_exists, properties)


def parse_alter_namespace(cursor: Cursor) -> Statement:
    """Parse what follows ALTER."""
    parse_namespace_word(cursor)
    name = cursor.name("the name of a namespace")
    statement: Statement
    if cursor.accept("unset"):
        cursor.expect_any(*_PROPERTIES)
        cursor.accept("if", "exists")
        statement = ChangeNamespace(name, removals=parse_keys(cursor))
    else:
        cursor.expect("set")
        if cursor.expect_any("location", *_PROPERTIES) == "location":
            statement = ChangeNamespace(name, {LOCATION: parse_text(cursor, "a location")})
        else:
            statement = ChangeNamespace(name, parse_properties(cursor).values)
    cursor.expect_end()
    return statement


def parse_drop_namespace(cursor: Cursor) -> Statement:
    """Parse what follows DROP."""
    parse_namespace_word(cursor)
    if_exists = cursor.accept("if", "exists")
    name = cursor.name("the name of a namespace")
    cascades = cursor.accept_any("cascade", "restrict") == "cascade"
    cursor.expect_end()
    return DropNamespace(name, if_exists, cascades)


def _new_parts(run: Run, name: Name) -> Namespace:
    """Return the name of a new namespace without that of the catalog."""
    has_catalog = len(name.parts) > 1 and name.parts[0] == run.lake.catalog.name
    return name.parts[1:] if has_catalog else name.parts


def _empty(run: Run, space: Namespace) -> None:
    """Drop what is in a namespace, and the namespaces below it."""
    lake, depth = run.lake, len(space)
    below = [each for each in walk_namespaces(lake.catalog.list_namespaces) if each[:depth] == space and each != space]
    for name, entry in lake.catalog.entries().items():
        if name.namespace[:depth] == space:
            drop = lake.drop_view if entry.kind is Kind.VIEW else lake.drop_table
            drop(str(name))
    for each in sorted(below, key=len, reverse=True):
        if has_namespace(run, each):
            lake.drop_namespace(".".join(each))
