"""Add existing Parquet files to a table, without copying them.

Raises LocationRefused, MissingFile, SchemaMismatch, AlreadyExists (a file that is already in the table), InvalidInput.
"""

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from icefield.codec.manifest.rows import DataFiles
from icefield.commit.action import Action, CommitTarget
from icefield.commit.actions.append import AppendFiles
from icefield.commit.actions.properties import EnsureNameMapping
from icefield.commit.loop import OwnFiles
from icefield.commit.open_write import OpenWrite
from icefield.commit.validate.added_files import RequireNewFiles, already_there
from icefield.dml.head import TableHead
from icefield.errors import InvalidInput
from icefield.model.metadata import TableMetadata
from icefield.model.snapshot import Snapshot
from icefield.parquet.add_files.describe import describe_file, import_settings
from icefield.parquet.write.data_files import as_columns
from icefield.storage.location import LOCAL_SCHEME, location_of_path, parse_location
from icefield.storage.store import Store

THREADS = 8
SUFFIX = ".parquet"
PathText = str | os.PathLike[str]
Files = PathText | Iterable[PathText]


@dataclass(frozen=True)
class FilesToAdd:
    """Data files to add; some may have no field ids."""

    columns: DataFiles
    have_ids: bool


def add_files(
    head: TableHead,
    store: Store,
    target: CommitTarget,
    files: Files,
    partition: Mapping[str, object] | None,
    check: Callable[[Iterable[str]], None] = lambda _: None,
) -> Snapshot | None:
    """Add files to a branch; return None if there are none. check: raises if one of them must not be added."""
    base = head.load().metadata
    added = describe_files(store, base, files, partition)
    if added.columns.num_rows == 0:
        return None
    new = RequireNewFiles(added.columns.paths, target.ref)
    append = AppendFiles(added.columns, base.spec, base.schema, target)
    # The files are not ours: never delete them, whatever the outcome of the commit.
    actions: list[Action] = [new, append] if added.have_ids else [new, EnsureNameMapping(), append]
    write = OpenWrite(head.backend)
    try:
        # First the lease, then the check: a collector that does not see the one has written a mark before the other.
        write.protect(head.committed(base), adds=sorted(added.columns.paths))
        check(added.columns.paths)
        return head.commit(actions, OwnFiles(write=write)).ref_head(target.ref)
    except BaseException:
        write.close()
        raise


def describe_files(
    store: Store, metadata: TableMetadata, files: Files, partition: Mapping[str, object] | None
) -> FilesToAdd:
    """Describe files from their footers; a directory means all Parquet files below it."""
    rules = import_settings(metadata, partition or {})
    locations = list_files(store, files)
    _check_once(locations)
    with ThreadPoolExecutor(THREADS) as pool:
        described = list(pool.map(lambda location: describe_file(store, location, rules), locations))
    columns = as_columns(described, metadata.spec, metadata.schema)
    return FilesToAdd(columns, all(file.has_ids for file in described))


def list_files(store: Store, files: Files) -> list[str]:
    """Return the locations of files; a directory means all Parquet files below it."""
    return list(_locations(store, files))


def _locations(store: Store, files: Files) -> Iterator[str]:
    for path in [files] if isinstance(files, str | os.PathLike) else files:
        text = os.fspath(path)
        if "\0" in text:
            raise InvalidInput(f"path {text!r} contains a zero byte")
        location = _one_spelling(text)
        if location.endswith(SUFFIX):
            yield location
            continue
        found = sorted(f.location for f in store.list(location) if _is_data(f.location.removeprefix(location)))
        if not found:
            raise InvalidInput(f"there are no Parquet files (*{SUFFIX}) in {text}")
        yield from found


def _one_spelling(text: str) -> str:
    """Return the location that a path or location means: `a/../b` and `b` are one file on a local disk."""
    if "://" not in text:
        return location_of_path(str(Path(text).resolve()))
    parsed = parse_location(text)
    is_plain = parsed.scheme != LOCAL_SCHEME or not any(part in parsed.path for part in ("//", "/./", "/../"))
    return text if is_plain else location_of_path(str(Path(parsed.path).resolve()))


def _is_data(below: str) -> bool:
    """Return whether a file below a directory is a data file; names with a leading dot or underscore are not."""
    hidden = any(part.startswith((".", "_")) for part in below.split("/") if "=" not in part)
    return below.endswith(SUFFIX) and not hidden


def _check_once(locations: list[str]) -> None:
    if twice := sorted(location for location, count in Counter(locations).items() if count > 1):
        raise already_there(twice)
