"""A store whose keys may be replaced, by whoever knows the version that they replace.

Tables never need that: their files are written once. A catalog that lives in a store does, for its pointers.

Error semantics:
CommitConflict      the key is not at the version that was named; it was left as it is
StorageError        the store refused, or could not be reached; nothing was written
CommitStateUnknown  the answer was lost and the write may have landed: read the key before doing anything
Unsupported         the place cannot replace a key atomically
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True)
class Versioned:
    """The bytes of a key, and the version that whoever replaces them has to name. Versions are opaque."""

    data: bytes
    version: str


class ConditionalStore(Protocol):
    """Keys that are read with their version and replaced by naming it."""

    def read_versioned(self, location: str) -> Versioned | None:
        """Return the current object of a key; None if there is none."""
        ...

    def put_if_match(self, location: str, data: bytes, version: str | None) -> None:
        """Replace the bytes of a key that is at a version, or take a key that must be free (None).

        No two writers who name the same version of a key both succeed.
        """
        ...

    def list_keys(self, prefix: str) -> Iterator[str]:
        """Yield the location of every key below a directory, at any depth and in no order."""
        ...
