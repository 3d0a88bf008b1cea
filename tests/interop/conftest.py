"""One lake, and one Iceberg Java that looks at it."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.interop.iceberg_java import ENVIRONMENT, IcebergJava
from tests.peers.gallery import Gallery

import icefield


@pytest.fixture(scope="session")
def interop_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("interop") / "a lake, 100%41"


@pytest.fixture(scope="session")
def gallery(interop_folder: Path) -> Iterator[Gallery]:
    with icefield.connect(interop_folder, durable=False) as lake:
        yield Gallery(lake)


@pytest.fixture(scope="session")
def java(interop_folder: Path) -> Iterator[IcebergJava]:
    """Iceberg Java; its own tables lie inside the lake."""
    if not ENVIRONMENT.exists():
        pytest.fail(f"{ENVIRONMENT} is not there: run `make interop`, which builds it")
    with IcebergJava(interop_folder / "java") as started:
        yield started
