"""The parsers of definitions, by the first word of a statement: CREATE, REPLACE, ALTER, DROP, UNDROP, COMMENT."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from icefield.errors import Unsupported
from icefield.sql.namespaces import NAMESPACE_WORDS, parse_namespace_word
from icefield.sql.query.spark_statements import parse_create_function, parse_left_to_spark
from icefield.sql.query.temporary_views import parse_create as parse_create_temporary
from icefield.sql.schema.alter_columns import CommentOnColumn
from icefield.sql.schema.alter_table import SetProperties, UnsetProperties, parse_alter_table
from icefield.sql.schema.create_table import CreateMode, parse_create_table
from icefield.sql.schema.drop import parse_drop_table, parse_drop_view, parse_undrop
from icefield.sql.schema.namespaces import (
    ChangeNamespace,
    parse_alter_namespace,
    parse_create_namespace,
    parse_drop_namespace,
)
from icefield.sql.schema.properties import COMMENT, comment_property
from icefield.sql.schema.types import parse_text
from icefield.sql.schema.views import ChangeView, parse_alter_view, parse_create_view
from icefield.sql.session import Explained, Run, Statement
from icefield.sql.syntax.cursor import Cursor, Name
from icefield.sql.syntax.place import Place

DefinitionParser = Callable[[Cursor], Statement]
# What Spark has besides, and keeps for itself.
_OF_SPARK = ("function", "variable", "var")
_TEMPORARY = ("temporary", "temp", "global")


@dataclass(frozen=True)
class Definition:
    """A statement that changes definitions. It has no dry run, and its explanation is what it says."""

    statement: Statement
    place: Place

    def run(self, run: Run) -> Any:
        """Execute it."""
        if run.is_dry_run:
            raise self.place.error("there is no dry run of a statement that changes definitions", kind=Unsupported)
        return self.statement.run(run)

    def explain(self, run: Run, mode: str) -> str:
        """Return what it would do, as far as it is known without doing it."""
        if isinstance(self.statement, Explained):
            return self.statement.explain(run, mode)
        return f"changes definitions, and no row:\n{self.place.text}"


def _parse_create(cursor: Cursor) -> Statement:
    start = cursor.position
    cursor.expect("create")
    replaces = cursor.accept("or")
    if replaces:
        cursor.expect("replace")
    word = cursor.peek()
    if word in _TEMPORARY:
        if cursor.peek(1) == "table":
            raise cursor.error(
                "Iceberg tables are not temporary", hint="Use CREATE TEMPORARY VIEW ... AS", kind=Unsupported
            )
        return parse_create_temporary(cursor, start, replaces=replaces)
    if word == "function":
        return parse_create_function(cursor, start)
    if word in _OF_SPARK:
        return parse_left_to_spark(cursor, start)
    if word == "view":
        return parse_create_view(cursor, replaces=replaces)
    if word in NAMESPACE_WORDS and not replaces:
        return parse_create_namespace(cursor)
    if word == "external":
        raise cursor.error(
            "an Iceberg table is not external", hint="Leave out EXTERNAL; LOCATION says where", kind=Unsupported
        )
    if word != "table":
        raise cursor.expected("TABLE, VIEW, TEMPORARY VIEW or NAMESPACE")
    return parse_create_table(cursor, CreateMode(replaces=replaces))


def _parse_replace(cursor: Cursor) -> Statement:
    cursor.expect("replace")
    return parse_create_table(cursor, CreateMode(replaces=True, creates=False))


def _parse_alter(cursor: Cursor) -> Statement:
    cursor.expect("alter")
    return _chosen(cursor, {"table": parse_alter_table, "view": parse_alter_view}, parse_alter_namespace)


def _parse_drop(cursor: Cursor) -> Statement:
    start = cursor.position
    cursor.expect("drop")
    if cursor.peek() in (*_TEMPORARY, *_OF_SPARK):
        return parse_left_to_spark(cursor, start)
    return _chosen(cursor, {"table": parse_drop_table, "view": parse_drop_view}, parse_drop_namespace)


def _chosen(cursor: Cursor, parsers: Mapping[str, DefinitionParser], of_namespaces: DefinitionParser) -> Statement:
    word = cursor.peek()
    if word in NAMESPACE_WORDS:
        return of_namespaces(cursor)
    if word not in parsers:
        raise cursor.expected("TABLE, VIEW or NAMESPACE")
    return parsers[word](cursor)


def _parse_comment(cursor: Cursor) -> Statement:
    cursor.expect("comment", "on")
    word = cursor.peek()
    if word in NAMESPACE_WORDS:
        parse_namespace_word(cursor)
    else:
        cursor.expect_any("table", "view", "column")
    name = cursor.name("a name")
    cursor.expect("is")
    place = cursor.place
    text = None if cursor.accept("null") else parse_text(cursor, "a comment or NULL")
    cursor.expect_end()
    if word == "table":
        return _comment_on_table(name, text, place)
    if word == "column":
        return CommentOnColumn(name, text)
    updates, removals = ({COMMENT: text}, ()) if text is not None else ({}, (COMMENT,))
    return (ChangeView if word == "view" else ChangeNamespace)(name, updates, removals)


def _comment_on_table(name: Name, text: str | None, place: Place) -> Statement:
    return UnsetProperties(name, (COMMENT,)) if text is None else SetProperties(name, comment_property(text, place))


def _defining(parse: DefinitionParser) -> DefinitionParser:
    def parse_definition(cursor: Cursor) -> Statement:
        start = cursor.position
        statement = parse(cursor)
        cursor.expect_end()
        return Definition(statement, cursor.since(start))

    return parse_definition


DEFINITIONS: Mapping[str, DefinitionParser] = {
    "create": _defining(_parse_create),
    "replace": _defining(_parse_replace),
    "alter": _defining(_parse_alter),
    "drop": _defining(_parse_drop),
    "undrop": _defining(parse_undrop),
    "comment": _defining(_parse_comment),
}
