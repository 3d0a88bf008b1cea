"""A store of files on a local or mounted disk.

put_new writes to a temporary name in the same directory, syncs it and hard-links it to its key: unlike a rename, a link
fails if the name exists, and the key never has partial content. A crash leaves at most a file that `is_temporary`
recognises. On a file system without hard links, the key itself is created exclusively and then written: there is still
one winner, but after a crash, or too early, a reader can find partial content. That is harmless for keys that are only
reached through a pointer written after put_new returned, which is how tables are read; it would not be for keys that
are found by guessing names.

open_new always writes its key in place, for the same reason; see `local_new_file`.

With `roots`, every location is resolved through symbolic links before use and must end inside a resolved root, so
neither `..` nor a link leads out. (A link that is created between the check and the use is not detected: roots protect
against foreign metadata, not against a hostile user of the same machine.) Listings neither follow nor show links, so
that linked files are never cleaned up.
"""

from __future__ import annotations

import errno
import itertools
import os
import stat
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

from icefield.deferred import deferred_imports
from icefield.errors import InvalidInput, MissingFile, StorageError

with deferred_imports(__name__):
    import pyarrow as pa

    from icefield.storage.disk import (
        check_regular,
        create_exclusively,
        fill,
        open_without_waiting,
        read_at,
        reading,
        remove_if_empty,
        sync_directory,
        writing,
    )
    from icefield.storage.local_new_file import LocalNewFile
    from icefield.storage.location import check_inside, local_path, location_of_path
    from icefield.storage.sizes import check_size
    from icefield.storage.store import StoredFile

_TEMPORARY_PREFIX = ".icefield-"
_TEMPORARY_SUFFIX = ".tmp"
READ_WHEN_OPENED_BYTES = 64 * 1024  # one read costs less than one for each column
_NO_HARD_LINKS = frozenset({errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK})


def is_temporary(location: str) -> bool:
    """Return whether a location is a temporary name of put_new, in use or left by a crash."""
    name = location.rpartition("/")[2]
    return name.startswith(_TEMPORARY_PREFIX) and name.endswith(_TEMPORARY_SUFFIX)


class LocalStore:
    """A store of local files.

    roots: the locations that the store may access; None allows all. durable=False skips fsync: a power failure may then
    lose acknowledged files, a crash of the process does not.
    """

    def __init__(self, *, roots: Iterable[str] | None = None, durable: bool = True) -> None:
        self._roots = None if roots is None else tuple(os.path.realpath(local_path(root)) for root in roots)
        self._durable = durable

    def check(self, location: str) -> None:
        self._checked_path(location)

    def read(self, location: str) -> bytes:
        # Without pathlib and buffers, which are half of the cost for the small files that planning reads first.
        with self._opened(location) as (descriptor, status):
            return read_at(descriptor, 0, status.st_size)

    def read_range(self, location: str, offset: int, length: int, *, of_size: int | None = None) -> bytes:
        if offset < 0 or length < 0:
            raise InvalidInput(f"cannot read {length} bytes at {offset} of {location}: both must be 0 or more")
        with self._opened(location) as (descriptor, status):
            check_size(location, status.st_size, of_size)
            return read_at(descriptor, offset, length)

    def size(self, location: str) -> int:
        with reading(location):
            return self._path(location).stat().st_size

    def put_new(self, location: str, data: bytes) -> None:
        path = self._path(location)
        with writing(location):
            if not self._put_by_link(path, data):
                self._put_in_place(path, data)
            if self._durable:
                sync_directory(path.parent)

    def delete(self, location: str) -> None:
        path = self._path(location)
        with writing(location):
            try:
                path.unlink()
            except (FileNotFoundError, NotADirectoryError):
                return

    def remove_empty_directories(self, prefix: str) -> None:
        """Remove the directories below a location that have no file; a writer creates its directory again."""
        root = self._path(prefix)
        below = [place for place, _ in _walk(root, location_of_path(str(root)))][1:]
        for place in reversed(below):  # those inside a directory come after it
            with writing(place):
                remove_if_empty(local_path(place))

    def list(self, prefix: str) -> Iterator[StoredFile]:
        root = self._path(prefix)
        found = (
            _describe(entry, f"{place}/{entry.name}")
            for place, entries in _walk(root, location_of_path(str(root)))
            for entry in entries
        )
        return (file for file in found if file is not None)

    def list_locations(self, prefix: str) -> Iterator[str]:
        """List files by name alone, so that a file that is deleted during the listing is still listed."""
        root = self._path(prefix)
        walk = _walk(root, location_of_path(str(root)))
        return (f"{place}/{entry.name}" for place, entries in walk for entry in entries)

    def describe(self, locations: Iterable[str]) -> Iterator[StoredFile | None]:
        """Yield files as a listing shows them, by location; None for one that does not exist, and for a link."""
        checked: set[str] = set()  # directories; resolving links for every file would take most of the time
        for location in locations:
            path = local_path(location)
            directory = path.rpartition("/")[0]
            if directory not in checked:
                self._checked_path(location_of_path(directory or "/"))
                checked.add(directory)
            try:
                status = os.lstat(path)
            except (FileNotFoundError, NotADirectoryError):
                yield None
                continue
            except OSError as error:
                raise StorageError(f"cannot read {location}: {error}") from error
            is_file = stat.S_ISREG(status.st_mode)
            yield StoredFile(location, status.st_size, status.st_mtime_ns // 1_000_000) if is_file else None

    def open_input(self, location: str) -> pa.NativeFile:
        # Not memory-mapped: if another process truncates the file, the process would crash, not just the read.
        with self._opened(location) as (descriptor, status):
            if status.st_size <= READ_WHEN_OPENED_BYTES and stat.S_ISREG(status.st_mode):
                return pa.BufferReader(read_at(descriptor, 0, status.st_size))
            return pa.OSFile(local_path(location), "rb")

    def native_uri(self, location: str) -> str:
        return next(self.native_uris([location]))

    def native_uris(self, locations: Iterable[str]) -> Iterator[str]:
        # Resolving links checks every parent directory: do it once per directory of files.
        inside: dict[str, bool] = {}
        for location in locations:
            path = os.path.normpath(local_path(location))
            if self._roots is not None:
                directory = path.rpartition("/")[0]
                if directory not in inside:
                    inside[directory] = _is_inside(os.path.realpath(directory), self._roots)
                if not inside[directory] or _is_link(path):
                    _check_inside(os.path.realpath(path), self._roots)
            yield f"file://{quote(os.fsencode(path))}"

    def open_new(self, location: str) -> LocalNewFile:
        return LocalNewFile(self._path(location), location, durable=self._durable)

    def _path(self, location: str) -> Path:
        return Path(self._checked_path(location))

    @contextmanager
    def _opened(self, location: str) -> Iterator[tuple[int, os.stat_result]]:
        """Open a file for reading: its descriptor and status. Raises OSError for a device, or for a pipe."""
        with reading(location):
            path = local_path(location)
            descriptor = self._open_inside(location, path)
            try:
                status = os.fstat(descriptor)
                check_regular(path, status)
                yield descriptor, status
            finally:
                os.close(descriptor)

    def _open_inside(self, location: str, path: str) -> int:
        """Open a file that is inside the roots; return its descriptor.

        On Linux the kernel names the file behind a descriptor, for a third of what it costs to resolve every directory.
        """
        if self._roots is None or not _is_inside(os.path.normpath(path), self._roots):
            return open_without_waiting(self._checked_path(location))
        try:
            descriptor = open_without_waiting(path)
        except OSError:
            self._checked_path(location)  # what is outside is refused, whether it exists or not
            raise
        try:
            if not _is_inside(_name_of_open(descriptor), self._roots):
                self._checked_path(location)
        except BaseException:
            os.close(descriptor)
            raise
        return descriptor

    def _checked_path(self, location: str) -> str:
        path = local_path(location)
        if self._roots is not None:
            _check_inside(os.path.realpath(path), self._roots)
        return path

    def _put_by_link(self, path: Path, data: bytes) -> bool:
        """Write under a temporary name and link it to its key; return False if hard links are not supported."""
        temporary, descriptor = self._create_temporary(path.parent)
        try:
            fill(descriptor, data, durable=self._durable)
            return _link(temporary, path)
        finally:
            temporary.unlink(missing_ok=True)

    def _put_in_place(self, path: Path, data: bytes) -> None:
        descriptor = create_exclusively(path, durable=self._durable)
        try:
            fill(descriptor, data, durable=self._durable)
        except BaseException:
            path.unlink(missing_ok=True)
            raise

    def _create_temporary(self, directory: Path) -> tuple[Path, int]:
        # A thread writes one file at a time, so the first name is free unless a crash left the file.
        for number in itertools.count():
            name = f"{_TEMPORARY_PREFIX}{os.getpid()}-{threading.get_ident()}-{number}{_TEMPORARY_SUFFIX}"
            try:
                return directory / name, create_exclusively(directory / name, durable=self._durable)
            except FileExistsError:
                continue
        raise AssertionError("unreachable: counting never ends")


def _link(temporary: Path, path: Path) -> bool:
    try:
        os.link(temporary, path)
    except FileExistsError:
        # Over NFS the response to a successful link can be lost, and the retry then finds its own link.
        if not temporary.samefile(path):
            raise
    except OSError as error:
        if error.errno in _NO_HARD_LINKS:
            return False
        raise
    return True


def _name_of_open(descriptor: int) -> str:
    """Return the path of an open file without links; empty where the kernel does not tell."""
    try:
        return os.readlink(f"/proc/self/fd/{descriptor}")  # noqa: PTH115 - without an object for the path
    except OSError:
        return ""


def _is_link(path: str) -> bool:
    try:
        return stat.S_ISLNK(os.lstat(path).st_mode)
    except OSError:
        return False


def _check_inside(path: str, roots: tuple[str, ...]) -> None:
    # Resolved paths are normalized, so strings can be compared; this runs several times in every commit.
    if not _is_inside(path, roots):
        check_inside(location_of_path(path), [location_of_path(root) for root in roots])


def _is_inside(path: str, roots: tuple[str, ...]) -> bool:
    return any(path == root or path.startswith(root if root == "/" else f"{root}/") for root in roots)


def _walk(directory: Path, location: str) -> Iterator[tuple[str, list[os.DirEntry[str]]]]:
    """Yield the location of each directory, at any depth, with its files."""
    # Names in a directory contain no slash, and are neither `.` nor `..`, so they are appended as they are.
    pending = [(str(directory), location.rstrip("/"))]
    while pending:
        path, place = pending.pop()
        entries = _entries(path, place)
        pending += [(e.path, f"{place}/{e.name}") for e in entries if e.is_dir(follow_symlinks=False)]
        yield place, [entry for entry in entries if entry.is_file(follow_symlinks=False)]


def _entries(directory: str, location: str) -> list[os.DirEntry[str]]:
    try:
        with reading(location), os.scandir(directory) as entries:
            return list(entries)
    except MissingFile:
        return []


def _describe(entry: os.DirEntry[str], location: str) -> StoredFile | None:
    try:
        status = os.lstat(entry.path)  # not by the entry, which would keep the result
    except (FileNotFoundError, NotADirectoryError):
        return None  # deleted since the directory was read
    except OSError as error:
        raise StorageError(f"cannot read {location}: {error}") from error
    return StoredFile(location, status.st_size, status.st_mtime_ns // 1_000_000)
