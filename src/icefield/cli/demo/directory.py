"""The directory of the demo: made fresh each time, but only where nothing but an earlier demo stood.

A marker file says that the demo made a directory. Raises InvalidInput for a directory that it may not clear.
"""

import shutil
from collections.abc import Iterator
from pathlib import Path

from icefield.config.connect import CATALOG_FILE, QUEUE_FOLDER
from icefield.errors import InvalidInput

MARKER = ".icefield-demo"
MARKER_TEXT = "Made by `icefield demo`, which clears this directory when it runs again.\n"
NAMESPACE, TABLE = "shop", "orders"


def make_fresh(directory: Path) -> bool:
    """Make the directory, clearing what an earlier demo left; return whether there was something to clear."""
    refuse_foreign(directory)
    had_some = (directory / MARKER).exists()
    try:
        for path in _of_demo(directory):
            _remove(path)
        directory.mkdir(parents=True, exist_ok=True)
        (directory / MARKER).write_text(MARKER_TEXT)
    except OSError as error:
        raise InvalidInput(f"cannot make {directory} afresh: {error.strerror}: {error.filename}") from error
    return had_some


def refuse_foreign(directory: Path) -> None:
    """Refuse a directory that holds anything which a demo did not make."""
    hint = "Choose another directory with --dir"
    if directory.exists() and not directory.is_dir():
        raise InvalidInput(f"cannot run the demo in {directory}: it is a file", hint=hint)
    if not directory.exists() or not any(directory.iterdir()):
        return
    if not (directory / MARKER).is_file():
        raise InvalidInput(f"cannot run the demo in {directory}: it holds files that no demo made", hint=hint)
    known = set(_of_demo(directory))
    foreign = sorted(path.name for path in directory.iterdir() if path not in known)
    foreign += sorted(f"{NAMESPACE}/{p.name}" for p in _inside(directory / NAMESPACE) if not _is_table(p))
    if foreign:
        named = ", ".join(foreign[:3]) + (" …" if len(foreign) > 3 else "")
        raise InvalidInput(f"cannot start afresh in {directory}: it also holds what no demo made: {named}", hint=hint)


def _of_demo(directory: Path) -> Iterator[Path]:
    """Name what a demo makes; the marker last, so that a clearing cut short can be taken up again."""
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
    return path.name.startswith(f"{TABLE}-")
