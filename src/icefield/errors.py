"""Every error that icefield raises, in one tree.

    IcefieldError
    ├── InvalidInput                the caller's: a bad name, value, option or schema
    │   ├── InvalidFilter           a filter that does not parse, or does not fit the schema
    │   ├── SchemaMismatch          rows or a schema that do not fit the table
    │   └── LocationRefused         a location outside the roots that the lake may touch
    ├── NotFound                    the caller's: something named is not there
    │   ├── NoSuchNamespace
    │   ├── NoSuchTable
    │   └── NoSuchSnapshot
    ├── AlreadyExists               the caller's: the name is taken
    ├── NamespaceNotEmpty           the caller's: the namespace still holds tables or namespaces
    ├── Unsupported                 a feature of the format, of a store or of a catalog that icefield does not have
    │   └── NeedsSpark              an expression that only Spark evaluates; carries the part
    ├── CheckFailed                 the data's: rows of a branch that a check before its publish forbids
    ├── CorruptFile                 the data's: bytes that do not decode; carries the location
    ├── MissingFile                 the data's: a file that metadata names is not in the store
    ├── StorageError                the store failed or refused
    │   └── FileAlreadyExists       put_new found the key taken
    ├── CatalogError                the catalog failed or refused
    ├── SourceLost                  Spark lost rows of a source that it kept in executors; nothing was changed
    ├── WorkerLost                  a Python worker of Spark ended in the middle of its work; nothing was changed
    ├── LeaseLost                   a collector declared the lease of a read or write dead
    └── CommitError
        ├── CommitConflict          somebody else moved the pointer first
        ├── ConcurrentChange        a concurrent commit contradicts this one; running it again needs fresh reads
        │   └── RowsMoved           files that it read were rewritten, without a change of rows
        └── CommitStateUnknown      the response was lost; the commit may have landed

Two questions are answered by every class, as class attributes:

retryable  may the same call be made again as it is, with hope?
cleanable  did the change certainly not happen, so that files written for it may be removed?
"""

import sys
import warnings
from collections.abc import Callable, Sequence
from typing import Any, ClassVar


class IcefieldError(Exception):
    """The base class of all errors that Icefield raises on purpose.

    Attributes:
        message: What could not be done, and why.
        hint: What to do about it, or None.
        excerpt: The line of an SQL statement that is wrong, with carets under the part; None outside of SQL.
        position: The line of that part, from 1, and its column, from 0.
        expression: The SQL expression that could not be bound or evaluated, where there may be several; else None.
        retryable: Whether the same call may be made again as it is.
        cleanable: Whether the change certainly did not happen.
    """

    retryable: ClassVar[bool] = False
    cleanable: ClassVar[bool] = True

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.excerpt: str | None = None
        self.position: tuple[int, int] | None = None
        self.expression: str | None = None

    def __str__(self) -> str:
        said = f"{self.message}. {self.hint}" if self.hint else self.message
        return f"{said}\n{self.excerpt}" if self.excerpt else said

    def __reduce__(self) -> tuple[Callable[..., "IcefieldError"], tuple[type["IcefieldError"], dict[str, Any]]]:
        # Errors travel from Spark's workers; the default would call __init__ with the wrong arguments.
        return _restore, (type(self), self.__dict__)


class IcefieldWarning(UserWarning):
    """Something was accepted, but has no effect here."""


def warn_caller(message: str) -> None:
    """Warn of something without effect, at the line of the caller that is not in this package."""
    frame, level = sys._getframe(), 1  # noqa: SLF001
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "icefield":
        frame, level = frame.f_back, level + 1
    warnings.warn(message, IcefieldWarning, stacklevel=level)


def _restore(kind: type[IcefieldError], state: dict[str, Any]) -> IcefieldError:
    error = kind.__new__(kind)
    error.args = (state["message"],)
    error.__dict__.update(state)
    return error


class InvalidInput(IcefieldError):
    """An argument cannot be used. Nothing was changed."""


class InvalidFilter(InvalidInput):
    """A filter does not parse, names no column, or compares what cannot be compared."""


class SchemaMismatch(InvalidInput):
    """Rows or a schema do not fit the table."""


class LocationRefused(InvalidInput):
    """A location is outside the roots of the lake."""


class NotFound(IcefieldError):
    """Something that the caller named does not exist."""


class NoSuchNamespace(NotFound):
    """The namespace is not in the catalog."""


class NoSuchTable(NotFound):
    """The table or view is not in the catalog."""


class NoSuchSnapshot(NotFound):
    """The snapshot, ref or time is not in the table's history."""


class AlreadyExists(IcefieldError):
    """The name is taken."""


class NamespaceNotEmpty(IcefieldError):
    """The namespace still holds tables, views or namespaces."""


class Unsupported(IcefieldError):
    """A feature that Icefield, the store or the catalog does not have. The call is refused as a whole."""


class NeedsSpark(Unsupported):
    """An expression has a part that only Spark evaluates; `part` says which."""

    def __init__(self, part: str, *, hint: str | None = None) -> None:
        super().__init__(f"only Spark can evaluate {part}", hint=hint or "Run it with engine='spark'")
        self.part = part


class CheckFailed(IcefieldError):
    """Rows of a branch break a check, so that it was not published.

    Attributes:
        failures: One value for each check that failed: its name, its filter, how many rows, and some of them.
    """

    def __init__(self, message: str, *, hint: str | None = None, failures: Sequence[Any] = ()) -> None:
        super().__init__(message, hint=hint)
        self.failures = tuple(failures)


class CorruptFile(IcefieldError):
    """A file cannot be decoded, or is not the one that metadata describes; `location` says which."""

    def __init__(self, location: str, why: str, *, hint: str | None = None) -> None:
        super().__init__(f"cannot read {location}: {why}", hint=hint)
        self.location = location
        self.why = why


class MissingFile(IcefieldError):
    """A file that metadata refers to is not in the store; `location` says which."""

    def __init__(self, location: str, *, hint: str | None = None) -> None:
        super().__init__(f"no file at {location}", hint=hint)
        self.location = location


class StorageError(IcefieldError):
    """The store failed. A write may or may not have happened."""

    retryable, cleanable = True, False


class FileAlreadyExists(StorageError):
    """A new file could not be written, because its name is taken. The existing file was left as it is."""

    retryable, cleanable = False, True


class CatalogError(IcefieldError):
    """The catalog failed or refused. Nothing was changed."""


class SourceLost(IcefieldError):
    """Spark lost rows of a source that it kept in executors. Nothing was changed; the same call may be made again."""

    retryable = True


class WorkerLost(IcefieldError):
    """A Python worker of Spark was killed, or ran out of memory. Nothing was changed; the call may be made again."""

    retryable = True


class LeaseLost(IcefieldError):
    """The lease of a read or write was not renewed in time, and a collector declared it dead. Run it again."""

    retryable, cleanable = True, True


class CommitError(IcefieldError):
    """A commit did not succeed. The subclass says what is certain."""


class CommitConflict(CommitError):
    """Other commits were faster, in every retry. Nothing was changed; the same call may be made again."""

    retryable, cleanable = True, True


class ConcurrentChange(CommitError):
    """A concurrent commit conflicts with this one. Nothing was changed; read again and decide again.

    Attributes:
        collisions: What changed on both sides, for a publish, a rebase, a cherry-pick and a revert.
    """

    retryable, cleanable = False, True

    def __init__(self, message: str, *, hint: str | None = None, collisions: Sequence[Any] = ()) -> None:
        super().__init__(message, hint=hint)
        self.collisions = tuple(collisions)


MOST_MOVES = 10  # of rows that a change reads, before it fails with RowsMoved


class RowsMoved(ConcurrentChange):
    """Files that a change read were rewritten concurrently, without a change of rows. The same call may be repeated."""

    retryable = True


class CommitStateUnknown(CommitError):
    """The catalog's answer was lost, so the commit may have landed. Delete nothing; check before writing again."""

    retryable, cleanable = False, False
