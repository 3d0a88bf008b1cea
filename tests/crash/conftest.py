"""The warm process that children are forked from, and scenes for them to die in."""

from collections.abc import Iterator

import pytest
from tests.crash.operations import OPERATIONS
from tests.crash.scene import Scene, Zygote
from tests.postgres import PostgresServer, running_server

# Catalogs differ in the swap; these operations make it with one table and with two, with and without new files.
ON_SERVER = ("append", "overwrite", "row delta", "transaction", "expiry")
SCENES = [(name, "sqlite") for name in OPERATIONS] + [(name, "postgres") for name in ON_SERVER]


@pytest.fixture(scope="session")
def zygote() -> Iterator[Zygote]:
    started = Zygote()
    yield started
    started.close()


@pytest.fixture(scope="session")
def crash_server() -> Iterator[PostgresServer]:
    with running_server() as server:
        yield server


@pytest.fixture(scope="module", params=SCENES, ids="-".join)
def scene(request: pytest.FixtureRequest, zygote: Zygote, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    """One operation on one catalog."""
    operation, catalog = request.param
    url = request.getfixturevalue("crash_server").new_schema() if catalog == "postgres" else None
    made = Scene(zygote, operation, tmp_path_factory.mktemp("crash"), url)
    yield made
    made.close()
