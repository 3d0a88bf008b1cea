"""A read-only store that finds the golden tables in the repository.

Tables hold absolute locations; the golden ones say `/icefield-golden/<name>/...`, with and without `file:`.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow as pa

from icefield.errors import LocationRefused, Unsupported
from icefield.storage.local import LocalStore
from icefield.storage.location import is_inside, local_path
from icefield.storage.store import NewFile, StoredFile

ROOT = "/icefield-golden"
FOLDER = Path(__file__).parent


class GoldenStore:
    """Maps every location below ROOT to the file in tests/golden/tables; holds nothing, so it can be pickled."""

    def __init__(self) -> None:
        self._files = LocalStore()

    def check(self, location: str) -> None:
        _here(location)

    def read(self, location: str) -> bytes:
        return self._files.read(_here(location))

    def read_range(self, location: str, offset: int, length: int, *, of_size: int | None = None) -> bytes:
        return self._files.read_range(_here(location), offset, length, of_size=of_size)

    def size(self, location: str) -> int:
        return self._files.size(_here(location))

    def put_new(self, location: str, data: bytes) -> None:
        raise _read_only(location)

    def delete(self, location: str) -> None:
        raise _read_only(location)

    def list(self, prefix: str) -> Iterator[StoredFile]:
        return self._files.list(_here(prefix))

    def open_input(self, location: str) -> pa.NativeFile:
        return self._files.open_input(_here(location))

    def native_uri(self, location: str) -> str:
        return self._files.native_uri(_here(location))

    def native_uris(self, locations: Iterable[str]) -> Iterator[str]:
        return self._files.native_uris(map(_here, locations))

    def open_new(self, location: str) -> NewFile:
        raise _read_only(location)


def _here(location: str) -> str:
    if not is_inside(location, ROOT):
        raise LocationRefused(f"{location} is not below {ROOT}")
    inside = local_path(location).removeprefix("/").removeprefix(ROOT.removeprefix("/"))
    return f"file://{FOLDER / 'tables'}{inside}"


def _read_only(location: str) -> Unsupported:
    return Unsupported(f"cannot write {location}: golden tables are only read")
