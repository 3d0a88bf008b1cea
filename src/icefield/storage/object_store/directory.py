"""A conditional store in a local directory: the pointers of a lake on disk without a database.

A key is a directory of numbered files, and its version is the highest number. Version n is replaced by hard-linking a
complete file to the name n + 1: a link fails if the name exists, so one of many writers wins, and a reader sees all of
the bytes or none.

Old numbers are removed, except the last KEPT. A writer that read version n a long time ago may find n + 1 free again
because it was removed; so after linking a number, a writer checks the highest one. If that is less than KEPT away, the
number cannot have existed before. Otherwise the outcome is unknown, and the writer raises CommitStateUnknown.

File systems without hard links are refused (Unsupported). Names must fit into 255 bytes with their ending.
"""

import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from icefield.errors import (
    CommitConflict,
    CommitStateUnknown,
    FileAlreadyExists,
    MissingFile,
    StorageError,
    Unsupported,
)
from icefield.storage.local import LocalStore
from icefield.storage.location import join_location
from icefield.storage.object_store.conditional import Versioned

KEPT = 32

_NUMBER = re.compile(r"\d{20}")


class DirectoryStore:
    """A ConditionalStore of local directories. durable=False skips fsync, as in LocalStore."""

    def __init__(self, *, durable: bool = True) -> None:
        self._files = _LinkingStore(durable=durable)

    def read_versioned(self, location: str) -> Versioned | None:
        while numbers := self._numbers(location):
            try:
                return Versioned(self._files.read(_numbered(location, numbers[-1])), str(numbers[-1]))
            except MissingFile:
                continue  # replaced KEPT times since the directory was read
        return None

    def put_if_match(self, location: str, data: bytes, version: str | None) -> None:
        number = int(version or 0) + 1
        numbers = self._numbers(location)
        if (numbers[-1] if numbers else 0) != number - 1:
            raise CommitConflict(f"{location} has changed since it was read")
        try:
            self._files.put_new(_numbered(location, number), data)
        except FileAlreadyExists as error:
            raise CommitConflict(f"{location} has changed since it was read") from error
        except StorageError as error:
            if self._numbers_after(location)[-1:] == numbers[-1:]:
                raise
            raise CommitStateUnknown(f"{location} may have been written: {error}") from error
        self._check_first(location, number)

    def list_keys(self, prefix: str) -> Iterator[str]:
        found = (location.rpartition("/") for location in self._files.list_locations(prefix))
        return iter({directory for directory, _, name in found if _NUMBER.fullmatch(name)})

    def _check_first(self, location: str, number: int) -> None:
        """Check that the number was not used and removed before, and remove old numbers."""
        numbers = self._numbers_after(location)
        if not numbers or numbers[-1] >= number + KEPT:
            raise CommitStateUnknown(f"{location} was replaced {KEPT} times while it was written")
        for old in numbers:
            if old <= number - KEPT:
                # The key is written; the next writer removes the old numbers.
                with suppress(StorageError):
                    self._files.delete(_numbered(location, old))

    def _numbers_after(self, location: str) -> list[int]:
        """List the numbers after a write that may have landed, so that a failure leaves the outcome unknown."""
        try:
            return self._numbers(location)
        except StorageError as error:
            raise CommitStateUnknown(f"{location} may have been written: {error}") from error

    def _numbers(self, location: str) -> list[int]:
        # By name alone: while the files of a busy key are examined one by one, all of them may be replaced.
        names = (name.rpartition("/")[2] for name in self._files.list_locations(location))
        return sorted(int(name) for name in names if _NUMBER.fullmatch(name))


class _LinkingStore(LocalStore):
    """A LocalStore that refuses to work without hard links, because a reader could see partial content."""

    def _put_in_place(self, path: Path, data: bytes) -> None:
        raise Unsupported(
            f"cannot create a catalog in {path.parent}: the file system does not support hard links",
            hint="Use a SQLite catalog, or another file system",
        )


def _numbered(location: str, number: int) -> str:
    return join_location(location, f"{number:020d}")
