"""Notice that a catalog is missing where its tables are still there.

A lake whose catalog file was deleted would open as an empty lake, and new tables would be made beside the old ones.
So where a catalog is about to be made, its warehouse is looked at for a table: a directory `metadata` with a metadata
file in it. The look is short: it ends with the first table, and after MOST_DIRECTORIES directories. It is only made
where there is no catalog yet.

Raises InvalidInput.
"""

import os
from collections import deque
from pathlib import Path

from icefield.errors import InvalidInput

MOST_DIRECTORIES = 1_000
_SUFFIXES = (".metadata.json", ".metadata.json.gz")


def refuse_lost_catalog(catalog: Path, warehouse: Path) -> None:
    """Refuse to make a catalog for a warehouse that holds tables."""
    if _is_there(catalog):
        return
    if (found := _find_table(warehouse)) is not None:
        raise InvalidInput(
            f"there is no catalog at {catalog}, but {warehouse} holds tables, such as {found}",
            hint="Restore the catalog from a copy, or begin an empty one with create=True (`--create-catalog`) and take"
            " the tables in by their newest metadata files (`icefield register`)",
        )


def _is_there(catalog: Path) -> bool:
    # An empty file is what a SQLite database is before its first table.
    return catalog.is_dir() or (catalog.exists() and catalog.stat().st_size > 0)


def _find_table(warehouse: Path) -> Path | None:
    """Return the metadata directory of a table, looking from the top down."""
    waiting = deque([warehouse])
    for _ in range(MOST_DIRECTORIES):
        if not waiting:
            break
        folder = waiting.popleft()
        try:
            entries = list(os.scandir(folder))
        except OSError:
            continue
        if folder.name == "metadata" and any(entry.name.endswith(_SUFFIXES) for entry in entries):
            return folder
        waiting.extend(Path(entry.path) for entry in entries if entry.is_dir(follow_symlinks=False))
    return None
