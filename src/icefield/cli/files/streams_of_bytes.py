"""Bytes of files as streams: pieces that are joined, text of any encoding as UTF-8, the encoding by its mark."""

import codecs
import io
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any

BLOCK_BYTES = 1 << 16
UTF_8 = "utf8"
_MARKS = {codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}
MARK_BYTES = 2


def marked_encoding(beginning: bytes) -> str | None:
    """Return the encoding that a file says at its beginning; None if it says none, or UTF-8."""
    return _MARKS.get(beginning[:MARK_BYTES])


def as_utf8(file: Any, encoding: str) -> io.BufferedReader:
    """Return the text of a file as UTF-8, without a mark at its beginning. Reading raises UnicodeDecodeError."""
    name = codecs.lookup(encoding).name
    decoder = codecs.getincrementaldecoder("utf-8-sig" if name == codecs.lookup(UTF_8).name else name)()
    pieces = iter(partial(file.read, BLOCK_BYTES), b"")
    whole = (decoder.decode(piece).encode() for piece in pieces)
    return joined(each for part in (whole, _last(decoder)) for each in part)


def joined(pieces: Iterable[bytes]) -> io.BufferedReader:
    """Return pieces of bytes as one stream."""
    return io.BufferedReader(_Joined(iter(pieces)), BLOCK_BYTES)


def _last(decoder: codecs.IncrementalDecoder) -> Iterator[bytes]:
    yield decoder.decode(b"", final=True).encode()


class _Joined(io.RawIOBase):
    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._left = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._left:
            piece = next(self._pieces, None)
            if piece is None:
                return 0
            self._left = piece
        size = min(len(buffer), len(self._left))
        buffer[:size], self._left = self._left[:size], self._left[size:]
        return size
