"""Whether files exist and have the size that metadata says.

The table's directories are listed once. A file that the listing does not have is looked at itself, because it may be
elsewhere, or spelt in another way; only that decides that a file is missing.
"""

from collections.abc import Iterable
from itertools import chain, islice

import pyarrow as pa
import pyarrow.compute as pc

from icefield.codec.rows import Column, Rows
from icefield.errors import LocationRefused, MissingFile
from icefield.fsck.finding import Check, Findings
from icefield.storage.store import Store

REFUSED = -1  # in place of the size of a file that the store may not access
FEW_FILES = 64  # looking at each costs less than a listing
_LISTED = pa.schema({"location": pa.string(), "size_bytes": pa.int64(), "modified_ms": pa.int64()})
_STEP = 10_000


class ExpectedFiles(Rows):
    """Files that metadata names. size_bytes is null where metadata has none; what: the type of file, for messages."""

    location: Column
    size_bytes: Column
    what: Column


class StoredSizes:
    """The sizes of files in a store; the directories are listed when they are first needed."""

    def __init__(self, store: Store, roots: Iterable[str]) -> None:
        self._store = store
        self._roots = list(roots)
        self._listed: pa.Table | None = None

    def check(self, expected: ExpectedFiles, findings: Findings) -> pa.Array:
        """Report files that are missing or have another size; return which of them can be read."""
        paths = expected.location.combine_chunks()
        found = self._sizes(paths)
        wanted = expected.size_bytes.combine_chunks()
        is_refused = pc.fill_null(pc.equal(found, REFUSED), fill_value=False)
        differs = pc.and_not(pc.fill_null(pc.not_equal(found, wanted), fill_value=False), is_refused)
        is_missing = found.is_null()
        for at in pc.indices_nonzero(is_missing).to_pylist():
            location, what = paths[at].as_py(), expected.what[at].as_py()
            findings.add(Check.MISSING_FILES, f"the {what} {location} does not exist", location=location)
        for at in pc.indices_nonzero(differs).to_pylist():
            location, what = paths[at].as_py(), expected.what[at].as_py()
            findings.add(
                Check.SIZES,
                f"the {what} {location} has {found[at].as_py():,} bytes, but metadata says {wanted[at].as_py():,}",
                location=location,
            )
        for at in pc.indices_nonzero(is_refused).to_pylist():
            location, what = paths[at].as_py(), expected.what[at].as_py()
            findings.add(
                Check.UNREADABLE_FILES, f"the {what} {location} is outside the lake's roots", location=location
            )
        return pc.invert(pc.or_(pc.or_(is_missing, differs), is_refused))

    def _sizes(self, paths: pa.Array) -> pa.Array:
        """Return the size of each file, null for those that do not exist."""
        if len(paths) <= FEW_FILES and self._listed is None:
            return pa.array([self._size(path) for path in paths.to_pylist()], pa.int64())
        listed = self._listing()
        at = pc.index_in(paths, value_set=listed["location"])
        sizes = listed["size_bytes"].combine_chunks().take(at)
        missing = pc.indices_nonzero(sizes.is_null())
        if len(missing) == 0:
            return sizes
        looked_at = pa.array([self._size(path) for path in paths.take(missing).to_pylist()], pa.int64())
        return pc.replace_with_mask(sizes, sizes.is_null(), looked_at)

    def _size(self, location: str) -> int | None:
        try:
            return self._store.size(location)
        except MissingFile:
            return None
        except LocationRefused:
            return REFUSED

    def _listing(self) -> pa.Table:
        if self._listed is None:
            self._listed = list_sizes(self._store, self._roots)
        return self._listed


def list_sizes(store: Store, roots: Iterable[str]) -> pa.Table:
    """List directories, as columns: location, size_bytes, modified_ms. A directory inside another is listed once."""
    places = {root.rstrip("/") + "/" for root in roots}
    outer = [root for root in places if not any(root != other and root.startswith(other) for other in places)]
    listed = chain.from_iterable(store.list(root) for root in outer)
    parts = [_LISTED.empty_table()]
    while batch := list(islice(listed, _STEP)):
        columns = zip(*((file.location, file.size_bytes, file.modified_ms) for file in batch), strict=True)
        parts.append(pa.table([list(column) for column in columns], schema=_LISTED))
    return pa.concat_tables(parts)
