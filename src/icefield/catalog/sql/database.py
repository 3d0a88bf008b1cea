"""The interface between the SQL catalog and a database: transactions, not connections.

Statements use `?` for values, and only the SQL that SQLite and PostgreSQL share. A database guarantees:

read    `work` sees one consistent snapshot.
write   `work` runs in one serializable transaction, and success is returned only after the commit succeeded.

Either may run `work` more than once, so it must have no other effects. What `work` raises is raised after a rollback.
CatalogError: nothing was changed. CommitStateUnknown: the commit was sent and its outcome is unknown.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

Result = TypeVar("Result")
Value = str | int | None


@dataclass(frozen=True)
class Rows:
    """The result of a statement: its column names, its rows, and how many rows it changed."""

    columns: tuple[str, ...]
    values: list[tuple[Value, ...]]
    changed: int


class Session(Protocol):
    """An open transaction."""

    def execute(self, statement: str, values: Sequence[Value] = ()) -> Rows:
        """Run one statement."""
        ...


class Database(Protocol):
    """A database that runs transactions. identity: distinguishes it from others, without secrets."""

    identity: str

    def read(self, work: Callable[[Session], Result]) -> Result:
        """Run `work` on one snapshot."""
        ...

    def write(self, work: Callable[[Session], Result]) -> Result:
        """Run `work` in one serializable transaction and commit it."""
        ...

    def close(self) -> None:
        """Close every connection."""
        ...
