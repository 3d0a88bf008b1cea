"""The directory of the demo: created again each time, but only if it is empty or an earlier demo created it.

A marker file identifies a directory that the demo created. Raises InvalidInput for a directory that it must not clear.
"""

import shutil
from collections.abc import Iterator
from pathlib import Path

from icefield.config.connect import CATALOG_FILE, QUEUE_FOLDER
from icefield.errors import InvalidInput

MARKER = ".icefield-demo"
MARKER_TEXT = "Made by `icefield demo`, which clears this directory when it runs again.\n"
NAMESPACE, TABLE = "shop", "orders"
ORDERS = f"{NAMESPACE}.{TABLE}"
TABLES = (TABLE, "accounts", "checking", "savings")  # of all chapters


def make_fresh(directory: Path) -> bool:
    """Create the directory, clearing an earlier demo; return whether there was one."""
    refuse_foreign(directory)
    had_some = (directory / MARKER).exists()
    try:
        for path in _of_demo(directory):
            _remove(path)
        directory.mkdir(parents=True, exist_ok=True)
        (directory / MARKER).write_text(MARKER_TEXT)
    except OSError as error:
        raise InvalidInput(f"cannot create {directory}: {error.strerror}: {error.filename}") from error
    return had_some


def refuse_foreign(directory: Path) -> None:
    """Raise InvalidInput for a directory with files that a demo did not create."""
    hint = "Choose another directory with --dir"
    if directory.exists() and not directory.is_dir():
        raise InvalidInput(f"cannot run the demo in {directory}: it is a file", hint=hint)
    if not directory.exists() or not any(directory.iterdir()):
        return
    if not (directory / MARKER).is_file():
        raise InvalidInput(f"cannot run the demo in {directory}: it holds other files", hint=hint)
    known = set(_of_demo(directory))
    foreign = sorted(path.name for path in directory.iterdir() if path not in known)
    foreign += sorted(f"{NAMESPACE}/{p.name}" for p in _inside(directory / NAMESPACE) if not _is_table(p))
    if foreign:
        named = ", ".join(foreign[:3]) + (" …" if len(foreign) > 3 else "")
        raise InvalidInput(f"cannot clear {directory}: the demo did not create {named}", hint=hint)


def _of_demo(directory: Path) -> Iterator[Path]:
    """List what a demo creates; the marker last, so that an interrupted clearing can be continued."""
    catalog = (f"{CATALOG_FILE}{suffix}" for suffix in ("", "-wal", "-shm", "-journal"))
    for name in (*catalog, QUEUE_FOLDER, NAMESPACE, MARKER):
        yield directory / name


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _inside(directory: Path) -> Iterator[Path]:
    return directory.iterdir() if directory.is_dir() else iter(())


def _is_table(path: Path) -> bool:
    return path.name.startswith(tuple(f"{table}-" for table in TABLES))
