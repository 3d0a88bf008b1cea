"""The top level of metadata files as raw JSON slices by key: known keys are taken out, unknown ones are preserved."""

import gzip
import io
import zlib
from typing import Any, TypeVar

import msgspec

try:
    from isal import igzip, isal_zlib

    _GZIP: Any = igzip
    _ERRORS: Any = (OSError, EOFError, zlib.error, isal_zlib.error)
except ImportError:  # a platform without a wheel; a quarter of the speed
    _GZIP = gzip
    _ERRORS = (OSError, EOFError, zlib.error)

from icefield.codec.decompression import most_inflated
from icefield.errors import CorruptFile

Json = dict[str, Any]
T = TypeVar("T")

GZIP_MAGIC = b"\x1f\x8b"
MAX_METADATA_BYTES = 1 << 30
_STEP_BYTES = 1 << 20
# Of 1,000 snapshots, 638 KB: isal's level 2 makes 93 KB in 1 ms, zlib's level 6 makes 90 KB in 11 ms.
_LEVEL = 2


def inflate_json(data: bytes, location: str) -> bytes:
    """Return the JSON of a metadata file, plain or gzipped. Raises CorruptFile."""
    # (spec: Naming for GZIP compressed Metadata JSON files; decided by the content, because the name may be wrong.)
    if not data.startswith(GZIP_MAGIC):
        return data
    limit = most_inflated(len(data), MAX_METADATA_BYTES)
    parts, size = [], 0
    try:
        with _GZIP.GzipFile(fileobj=io.BytesIO(data)) as stream:
            # In chunks: reading it whole takes twice its size.
            while size <= limit and (part := stream.read(_STEP_BYTES)):
                parts.append(part)
                size += len(part)
    except _ERRORS as error:
        raise CorruptFile(location, f"its gzip stream is corrupt: {error}") from error
    if size > limit:
        raise CorruptFile(location, f"its {len(data):,} bytes inflate to more than {limit:,}")
    return b"".join(parts)


def deflate_json(data: bytes) -> bytes:
    """Compress an encoded metadata file; the same bytes give the same file."""
    deflated: bytes = _GZIP.compress(data, _LEVEL, mtime=0)
    return deflated


class KeyTaker:
    """Takes known keys out of a dictionary of raw slices; the unknown ones remain."""

    def __init__(self, keys: dict[str, msgspec.Raw]) -> None:
        self._keys = keys

    def required(self, key: str, decoder: "msgspec.json.Decoder[T]") -> T:
        """Decode a required key; raise KeyError or ValueError."""
        return decoder.decode(self._keys.pop(key))

    def optional(self, key: str, decoder: "msgspec.json.Decoder[T]", default: T) -> T:
        """Decode a key that may be missing or null."""
        raw = self._keys.pop(key, None)
        return default if raw is None or bytes(raw) == b"null" else decoder.decode(raw)
