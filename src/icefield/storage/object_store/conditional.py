"""A store whose keys can be replaced by conditional writes.

Tables never need that: their files are written once. A catalog in a store does, for its pointers.

Errors:
CommitConflict      the key is not at the expected version; it was not changed
StorageError        the store refused, or could not be reached; nothing was written
CommitStateUnknown  the response was lost and the write may have landed: read the key before doing anything else
Unsupported         the store cannot replace a key atomically
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True)
class Versioned:
    """The bytes of a key, and the version that a replacement must name. Versions are opaque."""

    data: bytes
    version: str


class ConditionalStore(Protocol):
    """Keys that are read with their version, and replaced only at that version."""

    def read_versioned(self, location: str) -> Versioned | None:
        """Return the current object of a key; None if there is none."""
        ...

    def put_if_match(self, location: str, data: bytes, version: str | None) -> None:
        """Replace the bytes of a key at a version, or create a key (None).

        Of several writers that name the same version of a key, at most one succeeds.
        """
        ...

    def list_keys(self, prefix: str) -> Iterator[str]:
        """Yield the location of every key below a directory, at any depth and in no order."""
        ...
