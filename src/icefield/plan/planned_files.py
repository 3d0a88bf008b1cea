"""Planned files as columns: their paths, and selections by path."""

from collections.abc import Iterable

import pyarrow as pa
import pyarrow.compute as pc


def paths_of(files: pa.Table) -> frozenset[str]:
    """Return the locations of planned files."""
    return frozenset(files.column("file_path").to_pylist())


def files_at(files: pa.Table, paths: Iterable[str]) -> pa.Table:
    """Return the files at the given paths."""
    return files.filter(pc.is_in(files.column("file_path"), value_set=pa.array(sorted(paths), pa.string())))
