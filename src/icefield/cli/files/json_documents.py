"""Read JSON that is not one object per line: arrays, objects over several lines, objects inside of a document.

    [{"id": 1}, {"id": 2}]                two rows
    {"id": 1}                             one row, also over several lines, and several of them
    {"data": {"items": [{"id": 1}]}}      with records = "data.items": one row

Rows are returned as lines of JSON, with values as they are written in the file: a decimal keeps all of its digits.
Raises ValueError for text that is not JSON.
"""

import json
from collections.abc import Iterator, Sequence
from typing import IO

CHUNK_CHARACTERS = 1 << 20


def is_json_lines(first_bytes: bytes) -> bool:
    """Return whether a file looks like one object per line: its first line is a whole object."""
    first = first_bytes.lstrip().split(b"\n", 1)[0].rstrip()
    if first.startswith(b"[") or not first:
        return False
    try:
        json.loads(first)
    except ValueError:
        # A line that is longer than the sample is taken for a row.
        return b"\n" not in first_bytes.strip() and len(first) > 1 and not first_bytes.endswith(b"\n")
    return True


def json_lines(stream: IO[str], records: str | None = None) -> Iterator[bytes]:
    """Yield each row as one line. records: the names that lead to the rows inside of a document, with dots."""
    text = _Text(stream)
    for row in _values(text) if records is None else _records(text, records.split("."), records):
        if not row.startswith("{"):
            raise ValueError(f"expected JSON objects, found {row[:40]}")
        # Inside of a string there is no line break: JSON writes it as \n.
        yield row.replace("\r", " ").replace("\n", " ").encode() + b"\n"
    if not text.is_at_end():
        raise ValueError("there is text after the document")


def _records(text: "_Text", names: Sequence[str], records: str) -> Iterator[str]:
    """Yield the rows below the names; the rest of the document is read too, so that a cut one is noticed."""
    if not names:
        yield from _elements(text) if text.skip("[") else [text.take()]
        return
    found = False
    for name in _members(text, records):
        if name == names[0] and found:
            raise ValueError(f"{name!r} of {records!r} is in the document twice")
        if name == names[0]:
            found = True
            yield from _records(text, names[1:], records)
        else:
            text.take()
    if not found:
        raise ValueError(f"there is no {names[0]!r} of {records!r} in the document")


def _members(text: "_Text", records: str) -> Iterator[str]:
    """Yield each name of an object; the caller reads the value behind it."""
    if not text.skip("{"):
        raise ValueError(f"there is no object on the way to {records!r}")
    while not text.skip("}"):
        name = json.loads(text.take())
        if not isinstance(name, str) or not text.skip(":"):
            raise ValueError("expected a name and a colon in the object")
        yield name
        if not text.skip(",") and not text.starts_with("}"):
            raise ValueError("expected a comma between the members of the object")


def _values(text: "_Text") -> Iterator[str]:
    """Yield the elements of an array, or the values of a file, one after another; only one is held in memory."""
    if text.skip("["):
        yield from _elements(text)
        return
    while not text.is_at_end():
        yield text.take()


def _elements(text: "_Text") -> Iterator[str]:
    while not text.skip("]"):
        if text.is_at_end():
            raise ValueError("the array has no end")
        yield text.take()
        if not text.skip(",") and not text.starts_with("]"):
            raise ValueError("expected a comma between the elements of the array")


class _Text:
    """The text of a stream that is not read yet; more of it is loaded when it is needed."""

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream
        self._text = ""
        self._at = 0
        self._decoder = json.JSONDecoder()

    def is_at_end(self) -> bool:
        while True:
            self._skip_spaces()
            if self._at < len(self._text):
                return False
            if not self._load():
                return True

    def starts_with(self, character: str) -> bool:
        return not self.is_at_end() and self._text[self._at] == character

    def skip(self, character: str) -> bool:
        found = self.starts_with(character)
        self._at += int(found)
        return found

    def take(self) -> str:
        """Return the text of the next value."""
        while True:
            self._skip_spaces()
            try:
                value, end = self._decoder.raw_decode(self._text, self._at)
            except ValueError:
                if not self._load():
                    raise
                continue
            # A number at the end of what was loaded may go on.
            if end == len(self._text) and not isinstance(value, dict | list | str) and self._load():
                continue
            taken, self._at = self._text[self._at : end], end
            return taken

    def _skip_spaces(self) -> None:
        while self._at < len(self._text) and self._text[self._at].isspace():
            self._at += 1

    def _load(self) -> bool:
        more = self._stream.read(CHUNK_CHARACTERS)
        self._text = self._text[self._at :] + more
        self._at = 0
        return bool(more)
