"""The table that a statement changes: its name and alias in the text, and the moment at which the change begins.

A statement that reads other rows than those of the changed table, in a query or a subquery, reads all of them at one
moment: it runs in a transaction of its own, unless one is open. Its commit starts from that moment. Tables that it only
read may have changed since, as they may in Iceberg; BEGIN ... COMMIT refuses that. Raises InvalidInput, NoSuchTable.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, tzinfo

from icefield.properties.property import Property
from icefield.sql.rows.expressions import Label, Wording
from icefield.sql.session import Run
from icefield.sql.syntax.cursor import Cursor, Name
from icefield.sql.text.constants import session_zone
from icefield.table.table import Table
from icefield.table.transaction import Transaction
from icefield.types.datatypes import TimestamptzNsType, TimestamptzType
from icefield.types.schema import Schema

VARIABLE = "${"
_NO_ALIAS = frozenset({"where", "set", "using", "on", "when", "values", "select"})


@dataclass(frozen=True)
class Target:
    """The changed table as written: its name, and what the statement calls it, if that is another name."""

    name: Name
    alias: str | None = None

    def label(self, run: Run) -> Label:
        """Return how expressions may refer to the table."""
        return label_of(run, self.name, self.alias)

    def wording(self, run: Run, table: Table) -> Wording:
        """Return how the expressions of a change without a source are written."""
        columns = frozenset(f.name.lower() for f in table.schema.fields)
        return Wording((self.label(run),), columns, session_zone(run))


def parse_target(cursor: Cursor, verb: str) -> Target:
    """Read the name of a table, and its alias."""
    name = cursor.name(f"the table to {verb}")
    if cursor.peek() in ("version", "timestamp", "for") and (cursor.is_at("for") or cursor.peek(1) == "as"):
        raise cursor.error(f"cannot {verb} an older version of a table", hint="Name a branch: <table>.branch_<name>")
    return Target(name, parse_alias(cursor))


def parse_alias(cursor: Cursor) -> str | None:
    """Read an alias, if one follows."""
    if cursor.accept("as"):
        return cursor.identifier("an alias")
    token = cursor.token()
    if token is None or not token.is_name or token.word in _NO_ALIAS:
        return None
    return cursor.identifier()


def label_of(run: Run, name: Name, alias: str | None) -> Label:
    """Return how expressions may refer to a relation: by its alias, or by its name, with its namespace or without."""
    if alias is not None:
        return Label(alias)
    found = run.find(name)
    if found is None:
        return Label(name.parts[-1], (name.parts,) if len(name.parts) > 1 else ())
    full = (run.lake.catalog.name, *found.name.namespace, found.name.name)
    # Spark calls a branch by the last part of its name.
    known = {name.parts, name.parts[-1:], *(full[at:] for at in range(len(full) - 1))} - {full[-1:]}
    return Label(found.name.name, tuple(sorted(known, key=len, reverse=True)))


@contextmanager
def at_one_moment(run: Run, name: Name, isolation: Property[str]) -> Iterator[Run]:
    """Run a statement so that all its reads are of one moment, and commit it at the end of the block.

    isolation: the property of the changed table that says whether its own rows, where a query read them, must be the
    same when the statement commits.
    """
    if run.session.transaction is not None:
        yield run
        return
    table = run.table(name)
    transaction = Transaction(run.lake.backend, isolation=isolation.read(table.properties), checks_sources=False)
    transaction.sessions = run.lake.source.sessions
    with transaction:
        yield replace(run, session=replace(run.session, transaction=transaction))


def filter_text(text: str, schema: Schema, zone: tzinfo | None) -> str:
    """Return a condition as `delete` and `update` take it.

    Filters take a string that is compared with a time as UTC, and have no variables, which Spark substitutes for
    ${name} also in strings. The text is then made more than a filter, so that it is evaluated as an expression, in the
    session. Values of parameters never have ${: `literal_of` escapes it.
    """
    if VARIABLE in text:
        return _as_expression(text)
    is_utc = zone == UTC
    has_times = any(isinstance(f.type, TimestamptzType | TimestamptzNsType) for f in schema.by_id.values())
    return text if is_utc or not has_times else _as_expression(text)


def _as_expression(text: str) -> str:
    return f"({text}) AND nvl(TRUE, TRUE)"
