"""Servers of catalogs for the tests of upkeep; those of the catalogs' own tests."""

from tests.catalog.conftest import postgres_server, postgres_url, zookeeper_server, zookeeper_url

__all__ = ["postgres_server", "postgres_url", "zookeeper_server", "zookeeper_url"]
