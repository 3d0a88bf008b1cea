"""The catalog of nodes without a server: URLs, names of nodes."""

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from icefield.ambient import SystemAmbient
from icefield.catalog.nodes import encode_name
from icefield.catalog.zookeeper import open_zookeeper_catalog
from icefield.errors import InvalidInput

PARTS = st.lists(st.text(max_size=5), min_size=1, max_size=3)


@given(PARTS, PARTS)
def test_names_of_nodes_are_plain_and_differ_where_names_differ(one: list[str], other: list[str]) -> None:
    encoded = encode_name("table", one)
    assert set(encoded) <= {*string.ascii_letters, *string.digits, *"%._-~:"}
    assert (encoded == encode_name("table", other)) == (one == other)


@pytest.mark.parametrize(
    "url",
    [
        "zookeeper://",
        "zookeeper:///lake",
        "zookeeper://me:hunter2@/lake",
        "zookeeper://me:hunter2@host:port/lake",
        "zookeeper://me:hunter2@host:99999999/lake",
        "zookeeper://me:hunter2/x@host/lake",
        "zookeeper://me:2181/hunter2@host/lake",
        "zookeeper://me@host/lake",
        "zookeeper://host:2181/lake?password=hunter2",
        "zookeeper://host/lake#hunter2",
        "zookeeper://host,,host/lake",
        "https://me:hunter2@host/lake",
        "zookeeper://host//lake",
        "zookeeper://host/a//lake",
        "zookeeper://host/./lake",
        "zookeeper://host/a/../lake",
        "zookeeper://host/a\0lake",
        "zookeeper://host/\ue000",
    ],
)
def test_a_url_that_is_wrong_is_refused_without_its_password(url: str) -> None:
    with pytest.raises(InvalidInput, match="ZooKeeper URL") as refused:
        open_zookeeper_catalog(url, "default", SystemAmbient())
    assert "hunter2" not in f"{refused.value}{refused.value.__cause__}"


@pytest.mark.parametrize(
    ("url", "identity"),
    [
        ("zookeeper://host", "zookeeper:host/catalog:default"),
        ("zookeeper://a:2181,b:2182/x/y/", "zookeeper:a:2181,b:2182/x/y/catalog:default"),
        ("zookeeper://me:hunter2@[::1]:2181,[::2]/x", "zookeeper:[::1]:2181,[::2]/x/catalog:default"),
    ],
)
def test_the_identity_is_the_place_without_the_login(url: str, identity: str) -> None:
    assert open_zookeeper_catalog(url, "default", SystemAmbient()).identity == identity
