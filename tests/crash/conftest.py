"""The warm process that children are forked from, and scenes for them to die in."""

from collections.abc import Iterator

import pytest
from tests.crash.operations import OPERATIONS
from tests.crash.scene import Scene, Zygote
from tests.postgres import PostgresServer, running_server

CATALOGS = ("sqlite", "postgres")


@pytest.fixture(scope="session")
def zygote() -> Iterator[Zygote]:
    started = Zygote()
    yield started
    started.close()


@pytest.fixture(scope="session")
def crash_server() -> Iterator[PostgresServer]:
    with running_server() as server:
        yield server


@pytest.fixture(scope="module", params=[(name, catalog) for name in OPERATIONS for catalog in CATALOGS], ids="-".join)
def scene(request: pytest.FixtureRequest, zygote: Zygote, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    """One operation on one catalog."""
    operation, catalog = request.param
    url = request.getfixturevalue("crash_server").new_schema() if catalog == "postgres" else None
    made = Scene(zygote, operation, tmp_path_factory.mktemp("crash"), url)
    yield made
    made.close()
