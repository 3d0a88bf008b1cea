"""One PostgreSQL server for the tests of a process, and an empty schema for each test that asks."""

from collections.abc import Iterator

import pytest
from tests.postgres import PostgresServer, running_server


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """A running server; a test that stops it starts it again."""
    with running_server() as server:
        yield server


@pytest.fixture
def postgres_url(postgres_server: PostgresServer) -> str:
    """The URL of a schema with nothing in it."""
    return postgres_server.new_schema()
