"""PyIceberg on a lake's own catalog."""

from pathlib import Path

from pyiceberg.catalog.sql import SqlCatalog
from sqlalchemy import URL


def open_pyiceberg(folder: Path) -> SqlCatalog:
    """Open the catalog of the lake in a folder; the tables that PyIceberg makes go beside ours."""
    return SqlCatalog("icefield", uri=uri_of(folder), warehouse=f"file://{folder}")


def uri_of(folder: Path) -> str:
    """Return where the catalog of the lake in a folder is, in the words of SQLAlchemy."""
    # As a URL, for there a %41 would be an A, and in a path it is not.
    return URL.create("sqlite", database=str(folder / "catalog.db")).render_as_string()
