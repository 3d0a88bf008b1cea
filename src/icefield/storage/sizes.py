"""Check the size of files against metadata: a file of another size is another file, whatever its content.

Metadata has the length of each file (`manifest_length`, `file_size_in_bytes`). A file that was replaced by one of
another table decodes without errors but has the wrong rows, so its size is checked wherever it is opened.
Raises CorruptFile, and what the store raises.
"""

import os
from urllib.parse import unquote_to_bytes

from icefield.errors import CorruptFile
from icefield.storage.disk import reading
from icefield.storage.store import Store


def check_size(location: str, found: int, expected: int | None) -> None:
    """Refuse a file whose size is not that in metadata; None: metadata has no size."""
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
