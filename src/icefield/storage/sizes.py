"""Files whose size metadata knows: another size means another file, whatever its bytes say.

Metadata names a file and its length (`manifest_length`, `file_size_in_bytes`). A file that was swapped for one of
another table decodes well and holds the wrong rows, so its size is compared wherever it is opened.
Raises CorruptFile, and what the store raises.
"""

import os
from urllib.parse import unquote_to_bytes

from icefield.errors import CorruptFile
from icefield.storage.disk import reading
from icefield.storage.store import Store


def check_size(location: str, found: int, expected: int | None) -> None:
    """Refuse a file that has not the size that metadata gives for it; None: metadata gives none."""
    if expected is not None and found != expected:
        raise CorruptFile(
            location,
            f"it has {found:,} bytes, but metadata says {expected:,}",
            hint="It was replaced or truncated; restore it from a backup",
        )


def read_sized(store: Store, location: str, expected: int | None) -> bytes:
    """Read a whole file of a known size."""
    data = store.read(location)
    check_size(location, len(data), expected)
    return data


def check_local_size(location: str, uri: str, expected: int | None) -> None:
    """Check the size of a local file that another program opens by its URI, or only that there is one."""
    with reading(location):
        path = unquote_to_bytes(uri.removeprefix("file://"))
        found = os.stat(path).st_size  # noqa: PTH116 - of very many files, without objects for each
    check_size(location, found, expected)
