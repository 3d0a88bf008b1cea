"""PyIceberg on a lake's own catalog."""

from pathlib import Path

from pyiceberg.catalog.sql import SqlCatalog
from sqlalchemy import URL


def open_pyiceberg(folder: Path) -> SqlCatalog:
    """Open the catalog of the lake in a folder; the tables that PyIceberg makes go beside ours."""
    # As a URL, for there a %41 would be an A, and in a path it is not.
    uri = URL.create("sqlite", database=str(folder / "catalog.db")).render_as_string()
    return SqlCatalog("icefield", uri=uri, warehouse=f"file://{folder}")
