"""Read JSON that is not one object per line: arrays, objects over several lines, objects inside of a document.

    [{"id": 1}, {"id": 2}]                two rows
    {"id": 1}                             one row, also over several lines, and several of them
    {"data": {"items": [{"id": 1}]}}      with records = "data.items": one row

Rows are returned as lines of JSON, which Arrow parses. Raises ValueError for text that is not JSON.
"""

import json
from collections.abc import Iterable, Iterator
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
    rows = _values(stream) if records is None else _records(json.load(stream), records)
    for row in rows:
        if not isinstance(row, dict):
            raise ValueError(f"expected JSON objects, found {json.dumps(row)[:40]}")
        yield json.dumps(row, ensure_ascii=False).encode() + b"\n"


def _records(document: object, records: str) -> Iterable[object]:
    for name in records.split("."):
        if not isinstance(document, dict) or name not in document:
            raise ValueError(f"there is no {name!r} of {records!r} in the document")
        document = document[name]
    return document if isinstance(document, list) else [document]


def _values(stream: IO[str]) -> Iterator[object]:
    """Yield the elements of an array, or the values of a file, one after another; only one is held in memory."""
    text = _Text(stream)
    is_array = text.skip("[")
    while True:
        if is_array and text.skip("]"):
            break
        if text.is_at_end():
            if is_array:
                raise ValueError("the array has no end")
            return
        yield text.take()
        if is_array and not text.skip(",") and not text.starts_with("]"):
            raise ValueError("expected a comma between the elements of the array")
    if not text.is_at_end():
        raise ValueError("there is text after the array")


class _Text:
    """The text of a stream that is not read yet; more of it is loaded when it is needed."""

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream
        self._text = ""
        self._at = 0
        self._decoder = json.JSONDecoder()

    def is_at_end(self) -> bool:
        while True:
            while self._at < len(self._text) and self._text[self._at].isspace():
                self._at += 1
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

    def take(self) -> object:
        while True:
            try:
                value, end = self._decoder.raw_decode(self._text, self._at)
            except ValueError:
                if not self._load():
                    raise
                continue
            # A number at the end of what was loaded may go on.
            if end == len(self._text) and not isinstance(value, dict | list | str) and self._load():
                continue
            self._at = end
            return value

    def _load(self) -> bool:
        more = self._stream.read(CHUNK_CHARACTERS)
        self._text = self._text[self._at :] + more
        self._at = 0
        return bool(more)
