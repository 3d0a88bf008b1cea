"""The locations of new data and delete files: one directory, or hashed directories for object stores.

    data/region=eu/00000-0-….parquet                                    plain
    data/0101/0110/1001/10110010/region=eu/00000-0-….parquet            write.object-storage.enabled
    data/0101/0110/1001/10110010-00000-0-….parquet                      and without partitions in paths

The hash is that of Iceberg Java, so that the files of both writers are distributed alike.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from icefield.model.metadata import TableMetadata
from icefield.properties.table import DATA_PATH, OBJECT_STORAGE, OBJECT_STORAGE_PARTITIONED
from icefield.storage.location import is_inside, join_location, parse_location
from icefield.types.murmur3 import hash_bytes

HASH_BITS = 20
_DIRECTORY_ENDS = (0, 4, 8, 12, HASH_BITS)


@dataclass(frozen=True)
class FileLayout:
    """Chooses the locations of new files.

    hashed: distribute files over hashed directories. names_partitions: whether hashed paths have partition directories.
    context: the part that identifies the table in hashed paths outside its location.
    """

    folder: str
    hashed: bool = False
    names_partitions: bool = True
    context: tuple[str, ...] = ()

    def location(self, name: str, partition: Sequence[str] = ()) -> str:
        """Return the location of a new file, below the directories of its partition."""
        if not self.hashed:
            return join_location(self.folder, *partition, name)
        path = (*partition, name) if self.names_partitions else (name,)
        hashes = _hashed_directories("/".join(path))
        if self.context or self.names_partitions:
            return join_location(self.folder, *hashes, *self.context, *path)
        return join_location(self.folder, *hashes[:-1], f"{hashes[-1]}-{name}")


def file_layout(metadata: TableMetadata) -> FileLayout:
    """Return the layout that a table's properties configure."""
    properties = metadata.properties
    given = DATA_PATH.read(properties)
    folder = join_location(metadata.location, "data") if given is None else str(parse_location(given)).rstrip("/")
    table = parse_location(metadata.location).path.strip("/").split("/")
    return FileLayout(
        folder,
        OBJECT_STORAGE.read(properties),
        OBJECT_STORAGE_PARTITIONED.read(properties),
        () if is_inside(folder, metadata.location) else tuple(table[-2:]),
    )


def _hashed_directories(path: str) -> list[str]:
    data = np.frombuffer(path.encode(), np.uint8)
    hashed = hash_bytes(data, np.zeros(1, np.int64), np.array([len(data)]))
    bits = f"{int(hashed[0]) % (1 << HASH_BITS):0{HASH_BITS}b}"
    return [bits[start:end] for start, end in pairwise(_DIRECTORY_ENDS)]
