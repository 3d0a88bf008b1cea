"""Take tables from where they were made into the repository, without what no reader needs."""

import shutil
import traceback
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Protocol

from tests.golden.expected import Expected, save

TABLES = Path(__file__).parent / "tables"


class WriteContext(Protocol):
    """One table in the making."""

    recipe: Any
    folder: Path

    def metadata_path(self) -> Path:
        """Return the newest metadata file."""
        ...

    def describe(self) -> Expected:
        """Read the table as its maker does, and put down what it says."""
        ...


def keep_all(contexts: Iterable[WriteContext]) -> int:
    """Make and keep tables; return how many failed."""
    return sum(not _made(context) for context in contexts)


def _made(context: WriteContext) -> bool:
    name = context.recipe.name
    try:
        context.recipe.make(context)
        expected = context.describe()
    except Exception:
        traceback.print_exc()
        print(f"{name}: failed", flush=True)
        return False
    size = _keep(context)
    save(expected)
    print(f"{name}: {len(expected['rows'])} rows, {size} bytes", flush=True)
    return True


def _keep(context: WriteContext) -> int:
    """Copy the newest state of a table into the repository; return its size in bytes."""
    target = TABLES / context.folder.name
    newest = context.metadata_path().name
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(context.folder, target, ignore=shutil.ignore_patterns("*.crc", "_SUCCESS"))
    for older in target.glob("metadata/*metadata.json"):
        if older.name != newest:
            older.unlink()
    return sum(path.stat().st_size for path in target.rglob("*") if path.is_file())
