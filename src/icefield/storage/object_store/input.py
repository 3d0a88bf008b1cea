"""A file for random access, on a store that reads ranges.

The end of the file is read at once: readers of Parquet and Puffin start there.
"""

import io
from collections.abc import Callable


class RangedFile(io.RawIOBase):
    """The bytes of an object; `read_range` returns bytes by offset and length."""

    def __init__(self, read_range: Callable[[int, int], bytes], size: int, tail: bytes) -> None:
        super().__init__()
        self._read_range = read_range
        self._size = size
        self._tail = tail
        self._position = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}[whence]
        if start + offset < 0:
            raise ValueError(f"cannot seek to {start + offset}")
        self._position = start + offset
        return self._position

    def read(self, size: int | None = -1) -> bytes:
        rest = max(self._size - self._position, 0)
        length = rest if size is None or size < 0 else min(size, rest)
        data = self._read_at(self._position, length) if length else b""
        self._position += len(data)
        return data

    def readall(self) -> bytes:
        return self.read()

    def _read_at(self, offset: int, length: int) -> bytes:
        in_tail = offset - (self._size - len(self._tail))
        if in_tail >= 0:
            return self._tail[in_tail : in_tail + length]
        return self._read_range(offset, length)
