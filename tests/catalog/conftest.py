"""One PostgreSQL and one ZooKeeper server for the tests of a process, and an empty place for each test that asks."""

from collections.abc import Iterator

import pytest
from tests.postgres import PostgresServer, running_server
from tests.zookeeper import ZooKeeperServer, running_zookeeper


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """A running server; a test that stops it starts it again."""
    with running_server() as server:
        yield server


@pytest.fixture
def postgres_url(postgres_server: PostgresServer) -> str:
    """The URL of a schema with nothing in it."""
    return postgres_server.new_schema()


@pytest.fixture(scope="session")
def zookeeper_server() -> Iterator[ZooKeeperServer]:
    """A running server; a test that kills it starts it again."""
    with running_zookeeper() as server:
        yield server


@pytest.fixture
def zookeeper_url(zookeeper_server: ZooKeeperServer) -> str:
    """The URL of a path with nothing at it."""
    return zookeeper_server.url()
