"""Load a table's metadata file.

Raises MissingFile, CorruptFile, Unsupported.
"""

from __future__ import annotations

from icefield.codec.json.metadata import decode_metadata
from icefield.deferred import deferred_imports
from icefield.errors import CorruptFile, MissingFile

with deferred_imports(__name__):
    from icefield.cache.reading import ReadContext
    from icefield.model.metadata import TableMetadata
    from icefield.storage.store import Store


def load_table_metadata(context: ReadContext, location: str) -> TableMetadata:
    """Read and decode a metadata file."""
    return context.decode(read_metadata_file(context.store, location), location, decode_metadata)


def read_metadata_file(store: Store, location: str) -> bytes:
    """Read the metadata file, of a table or of a view, that a pointer points at."""
    try:
        data = store.read(location)
    except MissingFile as missing:
        raise MissingFile(
            location,
            hint="The catalog points at this metadata file, but it does not exist; restore it, or register another one",
        ) from missing
    if not data:
        raise CorruptFile(location, "the file is empty")
    return data
