"""An object being written: in memory while it is small, else in parts; it exists, complete, once `close` returned.

A small file is one conditional request at close: of two writers of one key, one gets FileAlreadyExists. A file of more
than PART_BYTES is uploaded in parts while it is written. The client cannot make the completion of a multipart upload
conditional, so the key is checked when the file is opened and again just before completion: if two writers of one key
complete within that moment, both succeed, and the last one wins. That is why keys of data files have a random id.

A multipart upload that is aborted, or fails, is aborted in the store too. If its process dies, it stays there,
invisible but billed, until a lifecycle rule of the bucket removes it (AbortIncompleteMultipartUpload).
"""

import queue
import threading
import weakref
from collections.abc import Iterator
from typing import Final, Protocol

from icefield.errors import IcefieldError, StorageError
from icefield.storage.store import NewFile

PART_BYTES: Final = 16 << 20
_PARTS_WAITING = 2
_LOOK_SECONDS = 0.1


class Target(Protocol):
    """A key, and the id of the write to it."""

    @property
    def location(self) -> str: ...

    def refuse_taken(self) -> None:
        """Raise FileAlreadyExists if the key exists."""
        ...

    def put_whole(self, data: bytes) -> None:
        """Write the object in one request that fails if the key exists."""
        ...

    def put_parts(self, parts: Iterator[bytes]) -> None:
        """Write the object in parts; if the iterator raises, no object is created and the same error is raised."""
        ...

    def remove_if_ours(self) -> None:
        """Delete the object if this write created it."""
        ...


class ObjectNewFile(NewFile):
    """The sink of `ObjectStore.open_new`; see `store.NewFile` for its contract."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._buffer = bytearray()
        self._written = 0
        self._upload: _Upload | None = None
        self._closed = False
        self._complete = False
        self._uncertain = False

    @property
    def closed(self) -> bool:
        return self._closed

    def write(self, data: bytes) -> int:
        if self._closed:
            raise ValueError("the file is closed")
        length = memoryview(data).nbytes
        self._buffer += data
        self._written += length
        if len(self._buffer) >= PART_BYTES:
            self._send_buffer()
        return length

    def tell(self) -> int:
        return self._written

    def flush(self) -> None:
        pass

    def close(self) -> None:
        if self._closed:
            return
        self._closed = self._uncertain = True
        if self._upload is None:
            self._target.put_whole(bytes(self._buffer))
        else:
            self._upload.send(bytes(self._buffer))
            self._upload.complete()
        self._buffer.clear()
        self._complete = True

    def abort(self) -> None:
        if self._complete:
            return
        self._closed = True
        self._buffer.clear()
        if self._upload is not None:
            self._upload.abort()
        if self._uncertain:
            self._target.remove_if_ours()
            self._uncertain = False

    def _send_buffer(self) -> None:
        if self._upload is None:
            self._upload = _Upload(self._target)
            # A sink that is garbage-collected must not leave its upload open.
            weakref.finalize(self, self._upload.abandon)
        self._upload.send(bytes(self._buffer))
        self._buffer.clear()


class _End(Exception):
    """Makes the client abort the upload."""


class _Upload:
    """A thread that passes parts to the client, which pulls them one by one."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._parts: queue.Queue[bytes | None] = queue.Queue(_PARTS_WAITING)
        self._error: BaseException | None = None
        self._abandoned = threading.Event()
        self._thread = threading.Thread(target=self._run, name="icefield-upload", daemon=True)
        self._thread.start()

    def send(self, part: bytes) -> None:
        self._hand_over(part)

    def complete(self) -> None:
        # Here, and not where the parts are passed on: the client's own threads cannot make requests.
        self._target.refuse_taken()
        self._hand_over(None)
        self._thread.join()
        self._raise_error()

    def abort(self) -> None:
        self._abandoned.set()
        self._thread.join()

    def abandon(self) -> None:
        self._abandoned.set()

    def _hand_over(self, part: bytes | None) -> None:
        while self._thread.is_alive():
            try:
                self._parts.put(part, timeout=_LOOK_SECONDS)
            except queue.Full:
                continue
            return
        self._raise_error()

    def _raise_error(self) -> None:
        if isinstance(self._error, IcefieldError):
            raise self._error
        if self._error is not None:
            raise StorageError(f"cannot write {self._target.location}: {self._error!r}") from self._error

    def _run(self) -> None:
        try:
            self._target.put_parts(self._iterate())
        except BaseException as error:
            self._error = error

    def _iterate(self) -> Iterator[bytes]:
        while (part := self._next_part()) is not None:
            yield part

    def _next_part(self) -> bytes | None:
        while not self._abandoned.is_set():
            try:
                return self._parts.get(timeout=_LOOK_SECONDS)
            except queue.Empty:
                continue
        raise _End
