"""One lake with every table, made as tests ask for them, and the engines that look at it."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyiceberg.catalog.sql import SqlCatalog
from tests.peers.duckdb_reader import DuckDBReader
from tests.peers.gallery import Gallery
from tests.peers.pyiceberg_catalog import open_pyiceberg

import icefield


@pytest.fixture(scope="session")
def gallery_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the lake lies: in a path that a careless engine takes apart or decodes."""
    return tmp_path_factory.mktemp("peers") / "a lake, 100%41"


@pytest.fixture(scope="session")
def gallery(gallery_folder: Path) -> Iterator[Gallery]:
    with icefield.connect(gallery_folder, durable=False) as lake:
        yield Gallery(lake)


@pytest.fixture(scope="session")
def pyiceberg_catalog(gallery_folder: Path, gallery: Gallery) -> Iterator[SqlCatalog]:
    catalog = open_pyiceberg(gallery_folder)
    yield catalog
    catalog.close()


@pytest.fixture(scope="session")
def duckdb_reader() -> Iterator[DuckDBReader]:
    with DuckDBReader() as reader:
        yield reader
