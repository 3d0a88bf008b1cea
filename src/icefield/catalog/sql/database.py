"""The seam between the SQL catalog and a database: transactions, not connections.

Statements use `?` for values, and only what SQLite and PostgreSQL both understand. A database promises:

read    `work` sees one consistent snapshot.
write   `work` runs in one serializable transaction, and success is returned only after the commit succeeded.

Either may run `work` more than once, so it must do nothing but use its session. What `work` raises is raised after a
rollback. CatalogError: nothing was changed. CommitStateUnknown: the commit was sent and its answer is not known.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

Result = TypeVar("Result")
Value = str | int | None


@dataclass(frozen=True)
class Rows:
    """What a statement returned: the names of its columns, its rows, and how many rows it changed."""

    columns: tuple[str, ...]
    values: list[tuple[Value, ...]]
    changed: int


class Session(Protocol):
    """An open transaction."""

    def execute(self, statement: str, values: Sequence[Value] = ()) -> Rows:
        """Run one statement."""
        ...


class Database(Protocol):
    """A database that runs transactions. identity: what tells it from others, without secrets."""

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
