"""A second Avro writer, as plain as can be, for files that other writers make and icefield does not.

It writes from a schema as JSON and rows as dicts; a field that was renamed finds its value by the name in `was`.
"""

import json
import struct
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

SYNC = bytes(range(16))


@dataclass
class AvroWriter:
    """How arrays are laid out: in runs of so many elements, with or without their size in bytes."""

    run: int = 1000
    sized: bool = False
    named: dict[str, Any] = field(default_factory=dict)

    def value(self, schema: Any, value: Any) -> bytes:
        """Encode one value."""
        if isinstance(schema, list):
            branch = next(i for i, s in enumerate(schema) if (s == "null") == (value is None))
            return long(branch) + self.value(schema[branch], value)
        if isinstance(schema, str):
            return self.value(self.named[schema], value) if schema in self.named else simple(schema, value)
        kind = schema["type"]
        if "name" in schema:
            self.named[schema["name"]] = schema
        if kind == "record":
            return b"".join(self.value(f["type"], value[f.get("was", f["name"])]) for f in schema["fields"])
        if kind == "array":
            return self.array([self.value(schema["items"], each) for each in value])
        if kind == "map":
            return self.array([simple("string", k) + self.value(schema["values"], v) for k, v in value.items()])
        if kind == "fixed":
            return bytes(value)
        if kind == "enum":
            return long(value)
        return self.value(kind, value)

    def array(self, elements: Sequence[bytes]) -> bytes:
        """Encode the runs of an array."""
        out = b""
        for at in range(0, len(elements), self.run):
            data, count = b"".join(elements[at : at + self.run]), len(elements[at : at + self.run])
            out += (long(-count) + long(len(data)) if self.sized else long(count)) + data
        return out + b"\0"

    def file(self, schema: Any, rows: Iterable[Any], metadata: Mapping[str, str], per_block: int = 3) -> bytes:
        """Encode a whole file, some rows per block."""
        encoded = [self.value(schema, row) for row in rows]
        blocks = [encoded[at : at + per_block] for at in range(0, len(encoded), per_block)]
        return container(json.dumps(schema), [(len(b), b"".join(b)) for b in blocks], metadata, writer=self)


def container(
    schema: str,
    blocks: Iterable[tuple[int, bytes]],
    metadata: Mapping[str, str] | None = None,
    writer: AvroWriter | None = None,
) -> bytes:
    """Frame blocks (rows, data as compressed)."""
    pairs = {"avro.schema": schema, **(metadata or {})}
    items = [simple("string", key) + simple("string", value) for key, value in pairs.items()]
    head = b"Obj\x01" + (writer or AvroWriter()).array(items) + SYNC
    return head + b"".join(long(rows) + long(len(data)) + data + SYNC for rows, data in blocks)


def long(value: int) -> bytes:
    """Encode an Avro long."""
    rest, out = ((value << 1) ^ (value >> 63)) & (1 << 64) - 1, b""
    while rest > 0x7F:
        out, rest = out + bytes([rest & 0x7F | 0x80]), rest >> 7
    return out + bytes([rest])


def simple(kind: str, value: Any) -> bytes:
    """Encode a value without parts."""
    match kind:
        case "null":
            return b""
        case "boolean":
            return bytes([value])
        case "int" | "long":
            return long(value)
        case "float":
            return struct.pack("<f", value)
        case "double":
            return struct.pack("<d", value)
        case "string":
            return long(len(value.encode())) + bytes(value.encode())
        case "bytes":
            return long(len(value)) + bytes(value)
    raise AssertionError(kind)


def deflate(data: bytes) -> bytes:
    """Compress as Avro's deflate codec does."""
    stream = zlib.compressobj(9, zlib.DEFLATED, -15)
    return stream.compress(data) + stream.flush()
