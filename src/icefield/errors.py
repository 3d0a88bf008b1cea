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
    ├── CorruptFile                 the data's: bytes that do not decode; carries the location
    ├── MissingFile                 the data's: a file that metadata names is not in the store
    ├── StorageError                the store failed or refused
    │   └── FileAlreadyExists       put_new found the key taken
    ├── CatalogError                the catalog failed or refused
    └── CommitError
        ├── CommitConflict          somebody else moved the pointer first
        ├── ConcurrentChange        a concurrent commit contradicts this one; running it again needs fresh reads
        └── CommitStateUnknown      the answer was lost; the commit may have landed

Two questions are answered by every class, as class attributes:

retryable  may the same call be made again as it is, with hope?
cleanable  did the change certainly not happen, so that files written for it may be removed?
"""

from collections.abc import Callable
from typing import Any, ClassVar


class IcefieldError(Exception):
    """The root: catch this to catch everything that icefield raises on purpose."""

    retryable: ClassVar[bool] = False
    cleanable: ClassVar[bool] = True

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message}. {self.hint}" if self.hint else self.message

    def __reduce__(self) -> tuple[Callable[..., "IcefieldError"], tuple[type["IcefieldError"], dict[str, Any]]]:
        # Errors travel from Spark's workers; the default would call __init__ with the wrong arguments.
        return _restore, (type(self), self.__dict__)


class IcefieldWarning(UserWarning):
    """Something was accepted, but does not do what one might expect of it."""


def _restore(kind: type[IcefieldError], state: dict[str, Any]) -> IcefieldError:
    error = kind.__new__(kind)
    error.args = (state["message"],)
    error.__dict__.update(state)
    return error


class InvalidInput(IcefieldError):
    """What the caller gave cannot be used; nothing was changed."""


class InvalidFilter(InvalidInput):
    """A filter does not parse, names no column, or compares what cannot be compared."""


class SchemaMismatch(InvalidInput):
    """Rows or a schema do not fit the table."""


class LocationRefused(InvalidInput):
    """A location lies outside the roots that the lake may touch."""


class NotFound(IcefieldError):
    """Something that the caller named is not there."""


class NoSuchNamespace(NotFound):
    """The namespace is not in the catalog."""


class NoSuchTable(NotFound):
    """The table is not in the catalog."""


class NoSuchSnapshot(NotFound):
    """The snapshot, ref or point in time is not in the table's history."""


class AlreadyExists(IcefieldError):
    """The name is taken."""


class NamespaceNotEmpty(IcefieldError):
    """The namespace still holds tables or namespaces."""


class Unsupported(IcefieldError):
    """A feature that icefield does not have; the table or call that needs it is refused whole."""


class CorruptFile(IcefieldError):
    """Bytes that do not decode as what they should be."""

    def __init__(self, location: str, why: str, *, hint: str | None = None) -> None:
        super().__init__(f"cannot read {location}: {why}", hint=hint)
        self.location = location
        self.why = why


class MissingFile(IcefieldError):
    """A file that should be there is not in the store."""

    def __init__(self, location: str, *, hint: str | None = None) -> None:
        super().__init__(f"no file at {location}", hint=hint)
        self.location = location


class StorageError(IcefieldError):
    """The store failed; a write may or may not have happened."""

    retryable, cleanable = True, False


class FileAlreadyExists(StorageError):
    """put_new found the key taken and left it as it was."""

    retryable, cleanable = False, True


class CatalogError(IcefieldError):
    """The catalog could not be opened or answered with a failure; nothing was changed."""


class CommitError(IcefieldError):
    """A commit did not return with success; the subclass says what is certain."""


class CommitConflict(CommitError):
    """Somebody else moved the pointer first. Reload and propose again."""

    retryable, cleanable = True, True


class ConcurrentChange(CommitError):
    """A concurrent commit contradicts this one; decide again on fresh reads."""

    retryable, cleanable = False, True


class CommitStateUnknown(CommitError):
    """The answer was lost and the commit may have landed: delete nothing, look before retrying."""

    retryable, cleanable = False, False
