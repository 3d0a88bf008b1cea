"""The operations on a local disk for durable writes.

A file is durable when its bytes and its directory entry are synced, and so are the entries of all directories that were
created for it. Each operation raises OSError; `reading` and `writing` turn that into the store's errors.
"""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from icefield.errors import FileAlreadyExists, MissingFile, StorageError

DISK_IS_FULL = (errno.ENOSPC, errno.EDQUOT)
FREE_SPACE = "Free some space and run it again"
_READ_ONLY = "It is read-only for this process; check the mount and the permissions"
_HINTS = {
    **dict.fromkeys((errno.EROFS, errno.EACCES, errno.EPERM), _READ_ONLY),
    **dict.fromkeys(DISK_IS_FULL, FREE_SPACE),
}
_MOST_REMOVALS = 10  # of one directory, while one file is created


@contextmanager
def reading(location: str) -> Iterator[None]:
    """Turn an OSError of a read into MissingFile or StorageError."""
    try:
        yield
    except (FileNotFoundError, NotADirectoryError) as error:
        raise MissingFile(location) from error
    except OSError as error:
        raise StorageError(f"cannot read {location}: {error}") from error


@contextmanager
def writing(location: str) -> Iterator[None]:
    """Turn an OSError of a write into FileAlreadyExists or StorageError."""
    try:
        yield
    except FileExistsError as error:
        raise FileAlreadyExists(f"cannot write {location}: it already exists") from error
    except OSError as error:
        raise StorageError(f"cannot write {location}: {error}", hint=_HINTS.get(error.errno or 0)) from error


def create_exclusively(path: Path, *, durable: bool) -> int:
    """Create a file that must not exist, with the directories above it, and return its descriptor."""
    flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC
    for _ in range(_MOST_REMOVALS):
        try:
            return os.open(path, flags, 0o666)
        except FileNotFoundError:
            # Another process may remove an empty directory as soon as it is created.
            with suppress(FileNotFoundError):
                make_directory(path.parent, durable=durable)
    return os.open(path, flags, 0o666)


def remove_if_empty(directory: str) -> None:
    """Remove a directory, unless it has files or is gone."""
    try:
        os.rmdir(directory)  # noqa: PTH106 - as all of this module
    except FileNotFoundError:
        return
    except OSError as error:
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
            raise


def make_directory(path: Path, *, durable: bool) -> None:
    """Create a directory and its parents, unless they exist."""
    if path.is_dir():
        return
    make_directory(path.parent, durable=durable)
    try:
        path.mkdir()
    except FileExistsError:
        return
    if durable:
        sync_directory(path.parent)


def sync_directory(path: Path) -> None:
    """Make the entries of a directory durable."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    except OSError as error:
        # Some mounted file systems cannot sync a directory; its entries are durable without it.
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise
    finally:
        os.close(descriptor)


def fill(descriptor: int, data: bytes, *, durable: bool) -> None:
    """Write all bytes and sync them; the descriptor is always closed."""
    try:
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(descriptor, rest) :]
        if durable:
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


def read_at(descriptor: int, offset: int, length: int) -> bytes:
    """Read `length` bytes from `offset`, fewer only at the end of the file."""
    parts: list[bytes] = []
    while length > 0 and (part := os.pread(descriptor, length, offset)):
        parts.append(part)
        offset, length = offset + len(part), length - len(part)
    return b"".join(parts)


def check_regular(path: str, status: os.stat_result) -> None:
    """Refuse anything but a regular file; a directory fails later with its own error."""
    if not stat.S_ISREG(status.st_mode) and not stat.S_ISDIR(status.st_mode):
        raise OSError(errno.EINVAL, "it is a pipe, a socket or a device, not a regular file", path)


def open_without_waiting(path: str) -> int:
    """Open a file for reading, and return its descriptor; a pipe does not block."""
    return os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
