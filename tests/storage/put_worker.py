"""Race processes for one key: `put_worker.py <kind> <location> <writers> <size>`.

Forks the writers, starts them at once, and prints the numbers of those that won by their own account. Writer n writes
the byte n. Some kinds of store are broken on purpose, or die on the way.
"""

import os
import signal
import sys
from pathlib import Path

from icefield.errors import FileAlreadyExists
from icefield.storage.disk import create_exclusively, fill
from icefield.storage.local import LocalStore

WON, LOST = 10, 11


class RenamingStore(LocalStore):
    """Wrong: a rename replaces a key that is taken."""

    def _put_by_link(self, path: Path, data: bytes) -> bool:
        temporary, descriptor = self._create_temporary(path.parent)
        fill(descriptor, data, durable=False)
        temporary.replace(path)
        return True


class LinklessStore(LocalStore):
    """Right, on a file system without hard links."""

    def _put_by_link(self, path: Path, data: bytes) -> bool:
        return False


class DyingStore(LocalStore):
    """Dies after the temporary file is whole and before it has its key."""

    def _put_by_link(self, path: Path, data: bytes) -> bool:
        _, descriptor = self._create_temporary(path.parent)
        fill(descriptor, data, durable=True)
        os.kill(os.getpid(), signal.SIGKILL)
        return True


class DyingLinklessStore(LocalStore):
    """Dies half way through filling the key in place."""

    def _put_by_link(self, path: Path, data: bytes) -> bool:
        os.write(create_exclusively(path, durable=True), data[: len(data) // 2])
        os.kill(os.getpid(), signal.SIGKILL)
        return True


STORES = {
    "local": LocalStore,
    "renaming": RenamingStore,
    "linkless": LinklessStore,
    "dying": DyingStore,
    "dying-linkless": DyingLinklessStore,
}


def race(kind: str, location: str, writers: int, size: int) -> list[int]:
    gate, opener = os.pipe()
    children = [
        fork_writer(STORES[kind](), location, bytes([number]) * size, (gate, opener)) for number in range(writers)
    ]
    os.close(opener)
    statuses = [os.waitpid(child, 0)[1] for child in children]
    if any(os.WIFSIGNALED(status) for status in statuses):
        os.kill(os.getpid(), signal.SIGKILL)
    return [number for number, status in enumerate(statuses) if os.waitstatus_to_exitcode(status) == WON]


def fork_writer(store: LocalStore, location: str, data: bytes, pipe: tuple[int, int]) -> int:
    if child := os.fork():
        return child
    gate, opener = pipe
    os.close(opener)
    os.read(gate, 1)  # Ends for all writers at once, when the last holder of the other end closes it.
    try:
        store.put_new(location, data)
    except FileAlreadyExists:
        os._exit(LOST)
    except BaseException:
        os._exit(1)
    os._exit(WON)


if __name__ == "__main__":
    print(*race(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])))
