"""A local file being written at its final name, without a rename.

The key is created exclusively when writing starts, so no two writers share it, and it is durable once `close`
returned. Until then its content is partial, and no reader refers to it yet. Raises StorageError if the disk fails; the
writer then still owns the file and may abort.
"""

import io
import os
from pathlib import Path

from icefield.storage.disk import create_exclusively, sync_directory, writing
from icefield.storage.store import NewFile

_BUFFER_BYTES = 1 << 20


class LocalNewFile(NewFile):
    """The sink of `LocalStore.open_new`; see `store.NewFile` for its contract."""

    def __init__(self, path: Path, location: str, *, durable: bool) -> None:
        self._path = path
        self._location = location
        self._durable = durable
        self._complete = False
        with writing(location):
            descriptor = create_exclusively(path, durable=durable)
        self._file = io.BufferedWriter(io.FileIO(descriptor, "wb"), _BUFFER_BYTES)

    @property
    def closed(self) -> bool:
        return self._file.closed

    def write(self, data: bytes) -> int:
        with writing(self._location):
            return self._file.write(data)

    def tell(self) -> int:
        return self._file.tell()

    def flush(self) -> None:
        with writing(self._location):
            self._file.flush()

    def close(self) -> None:
        if self._file.closed:
            return
        with writing(self._location):
            self._close_durably()
        self._complete = True

    def abort(self) -> None:
        if self._complete:
            return
        with writing(self._location):
            # Closing the raw file discards the buffered bytes.
            self._file.raw.close()
            self._path.unlink(missing_ok=True)

    def _close_durably(self) -> None:
        try:
            self._file.flush()
            if self._durable:
                os.fsync(self._file.fileno())
        finally:
            self._file.raw.close()
        if self._durable:
            sync_directory(self._path.parent)
