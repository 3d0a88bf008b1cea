"""Which files the collector may delete at all.

A file is a table's own if it is below one of the directories that the table writes to, if its name is of a kind that
writers of Iceberg tables give, and if it was not brought in from outside. Such names contain a UUID; the names of files
that Spark writes without a table format (`part-00000-….snappy.parquet`), which `add_files` takes, are left alone.
"""

import re
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from icefield.commit.validate.ownership import roots_of
from icefield.leases.folder import GC, metadata_folder
from icefield.marks.files import FileKind, fold, fold_one
from icefield.model.metadata import TableMetadata

_UUID = r"[0-9a-fA-F]{8}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{12}"
# The first that matches the name; `in metadata` says whether the file must be in the metadata directory.
_KINDS: tuple[tuple[str, FileKind, bool | None], ...] = (
    (r"^\.icefield-.*\.tmp$", FileKind.TEMPORARY, None),
    (r"^(\d+-|v\d+).*\.metadata\.json(\.gz)?$", FileKind.METADATA, True),
    (rf"^snap-\d+-.*{_UUID}.*\.avro$", FileKind.MANIFEST_LIST, True),
    (rf"^({_UUID}.*-m\d+|optimized-m-{_UUID})\.avro$", FileKind.MANIFEST, True),
    (r"\.(stats|puffin)$", FileKind.STATISTICS, True),
    (rf"^partition-stats-\d+-{_UUID}\.parquet$", FileKind.STATISTICS, True),
    (rf"{_UUID}.*\.puffin$", FileKind.DELETES, False),
    (rf"{_UUID}.*\.(parquet|orc|avro)$", FileKind.DATA, False),
)
_FROM_OUTSIDE = r"^part-\d+"
_UP = "/../"


class Ownership:
    """What a table owns, by its metadata."""

    def __init__(self, metadata: TableMetadata) -> None:
        spelled = [root.rstrip("/") + "/" for root in roots_of(metadata.location, metadata.properties)]
        self.roots = [fold_one(root) for root in spelled]
        self._spelled_up = [root for root in spelled if _UP in root]
        self._metadata = fold_one(metadata_folder(metadata).rstrip("/") + "/")

    def kinds(self, locations: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
        """Return the kind of each file by its location, null for files that are not the table's own."""
        kinds, below = self.kinds_of_folded(fold(locations)), locations
        for root in self._spelled_up:
            below = pc.replace_substring_regex(below, f"^{re.escape(root)}", "/")
        # After a link to a directory, `..` leads elsewhere than its text says. No writer gives such names.
        return pc.if_else(pc.match_substring(below, _UP), pa.scalar(None, pa.int8()), kinds)

    def kinds_of_folded(self, paths: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
        """Return the same for locations that are folded already."""
        names = pc.replace_substring_regex(paths, r"^.*/", "")
        is_below = _starts(paths, self.roots)
        in_metadata = _starts(paths, [self._metadata])
        in_gc = pc.match_substring_regex(paths, f"^{re.escape(self._metadata)}{GC}/")
        kinds = pc.if_else(is_below, pa.scalar(None, pa.int8()), pa.scalar(None, pa.int8()))
        for pattern, kind, place in reversed(_KINDS):
            here = pc.and_(pc.match_substring_regex(names, pattern), is_below)
            if place is not None:
                here = pc.and_(here, in_metadata if place else pc.invert(in_metadata))
            kinds = pc.if_else(here, pa.scalar(int(kind), pa.int8()), kinds)
        outside = pc.or_(pc.match_substring_regex(names, _FROM_OUTSIDE), in_gc)
        # Metadata files of other tables can be in a directory below; only those directly in it are the table's own.
        nested = pc.and_(in_metadata, pc.match_substring_regex(paths, f"^{re.escape(self._metadata)}.*/"))
        is_temporary_file = pc.equal(pc.fill_null(kinds, -1), int(FileKind.TEMPORARY))
        refused = pc.or_(outside, pc.and_(nested, pc.invert(is_temporary_file)))
        return pc.if_else(refused, pa.scalar(None, pa.int8()), kinds)

    def kind(self, location: str) -> FileKind | None:
        """Return the kind of one file; None if it is not the table's own."""
        found = self.kinds(pa.array([location], pa.string()))[0].as_py()
        return None if found is None else FileKind(found)


def _starts(paths: pa.Array | pa.ChunkedArray, prefixes: Sequence[str]) -> pa.Array | pa.ChunkedArray:
    found = pc.starts_with(paths, prefixes[0])
    for prefix in prefixes[1:]:
        found = pc.or_(found, pc.starts_with(paths, prefix))
    return found
