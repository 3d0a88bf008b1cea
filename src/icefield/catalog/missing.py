"""Detect that a catalog is missing while its tables still exist.

A lake whose catalog file was deleted would open as an empty lake, and new tables would be created beside the old ones.
So before a catalog is created, its warehouse is searched for a table: a directory `metadata` with a metadata file in
it. The search ends with the first table, or after MOST_DIRECTORIES directories. It runs only if there is no catalog
yet: no file, an empty one, or a SQLite file of another application.

Raises InvalidInput.
"""

import os
from collections import deque
from collections.abc import Callable
from pathlib import Path

from icefield.errors import InvalidInput

MOST_DIRECTORIES = 1_000
METADATA_SUFFIXES = (".metadata.json", ".metadata.json.gz")


def refuse_lost_catalog(catalog: Path, warehouse: Path) -> None:
    """Refuse to create a catalog for a warehouse that contains tables."""
    refuse_tables(warehouse, f"there is no catalog at {catalog}", lambda: _is_there(catalog))


def refuse_tables(warehouse: Path, why: str, is_there: Callable[[], bool]) -> None:
    """Refuse a warehouse that contains tables but has no catalog; `why` says what is wrong with the catalog."""
    # Checked again last: another process may have created the catalog, and then the table that was found.
    if is_there() or (found := _find_table(warehouse)) is None or is_there():
        return
    raise InvalidInput(
        f"{why}, but {warehouse} holds tables, such as {found}",
        hint="Restore the catalog from a backup, or start an empty one with create=True (`--create-catalog`) and add"
        " the tables by their newest metadata files (`icefield register`)",
    )


def _is_there(catalog: Path) -> bool:
    # A directory of records keeps those of dropped tables, so a directory without files has lost them. A SQLite
    # database is an empty file before its first table; any other content may only be read by SQLite.
    if catalog.is_dir():
        return any(files for _, _, files in os.walk(catalog))
    return catalog.exists() and catalog.stat().st_size > 0


def _find_table(warehouse: Path) -> Path | None:
    """Return the metadata directory of a table, searching breadth-first."""
    waiting = deque([warehouse])
    for _ in range(MOST_DIRECTORIES):
        if not waiting:
            break
        folder = waiting.popleft()
        try:
            entries = list(os.scandir(folder))
        except OSError:
            continue
        if folder.name == "metadata" and any(entry.name.endswith(METADATA_SUFFIXES) for entry in entries):
            return folder
        waiting.extend(Path(entry.path) for entry in entries if entry.is_dir(follow_symlinks=False))
    return None
