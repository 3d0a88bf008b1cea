"""Locations: the spellings of local files, joining, and what lies inside what."""

import posixpath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from icefield.errors import InvalidInput, LocationRefused
from icefield.storage.location import (
    Location,
    check_inside,
    is_inside,
    join_location,
    local_path,
    location_of_path,
    parse_location,
)

ODD_CHARACTERS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=30)
PATHS = ODD_CHARACTERS.map(lambda text: "/" + text)


@pytest.mark.parametrize(
    "spelling", ["/a/b c%20?d#e", "file:/a/b c%20?d#e", "file:///a/b c%20?d#e", "FILE:///a/b c%20?d#e"]
)
def test_every_spelling_of_a_local_file_is_the_same_raw_path(spelling: str) -> None:
    assert local_path(spelling) == "/a/b c%20?d#e"
    assert str(parse_location(spelling)) == "file:///a/b c%20?d#e"


@given(PATHS)
def test_a_path_survives_its_location_character_by_character(path: str) -> None:
    assert local_path(location_of_path(path)) == "/" + path.lstrip("/")


def test_an_object_store_location_keeps_its_bucket_and_key() -> None:
    assert parse_location("s3://bucket/a//b%2F") == Location("s3", "bucket", "/a//b%2F")
    assert parse_location("memory://x") == Location("memory", "x", "")


@pytest.mark.parametrize(
    "text", ["", "a/b", "file:a/b", "file://host/a", "file://", "s3:///key", "s3:key", "/a\0b", "1:/x"]
)
def test_text_that_is_no_location_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput):
        parse_location(text)


def test_a_local_path_is_refused_for_other_schemes_and_a_location_for_relative_paths() -> None:
    with pytest.raises(LocationRefused, match="scheme is s3"):
        local_path("s3://bucket/key")
    with pytest.raises(InvalidInput, match="relative"):
        location_of_path("a/b")


@pytest.mark.parametrize(
    ("base", "parts", "joined"),
    [
        ("file:///a", ("b", "c"), "file:///a/b/c"),
        ("/a/", ("/b/", "c d"), "file:///a/b/c d"),
        ("file:/", ("b",), "file:///b"),
        ("s3://bucket", ("k=1/x%2Fy",), "s3://bucket/k=1/x%2Fy"),
        ("memory://x/a", (), "memory://x/a"),
    ],
)
def test_joining_appends_below_the_base(base: str, parts: tuple[str, ...], joined: str) -> None:
    assert join_location(base, *parts) == joined


@pytest.mark.parametrize("part", ["", "/", "..", "a/../../b", ".", "a/."])
def test_joining_never_climbs(part: str) -> None:
    with pytest.raises(InvalidInput):
        join_location("file:///a", part)


@pytest.mark.parametrize(
    ("location", "root", "inside"),
    [
        ("/a/b", "/a/b", True),
        ("/a/b/c", "file:///a/b/", True),
        ("file:/a/b/c", "/a//b/.", True),
        ("/a/bc", "/a/b", False),
        ("/a/b/../c", "/a/b", False),
        ("/a/x/../b/c", "/a/b", True),
        ("/../a/b", "/a/b", True),
        ("/a", "/a/b", False),
        ("/a/B/c", "/a/b", False),
        ("/anything", "/", True),
        ("s3://x/a/b", "s3://x/a", True),
        ("s3://x/a/b", "s3://x", True),
        ("s3://x/a/b", "s3://y/a", False),
        ("s3://x/ab", "s3://x/a", False),
        ("s3://x/a/../b", "s3://x/a", False),
        ("s3://x/b/../a/c", "s3://x/a", False),
        ("s3://x//a/c", "s3://x/a", False),
        ("gs://x/a", "s3://x/a", False),
    ],
)
def test_inside_is_by_component_and_folded_only_for_local_files(location: str, root: str, inside: bool) -> None:
    assert is_inside(location, root) is inside


@given(st.lists(st.sampled_from(["a", "b", "ab", "..", ".", ""]), max_size=8))
def test_inside_agrees_with_the_posix_rule_of_folding(names: list[str]) -> None:
    path = "/" + "/".join(names)
    folded = posixpath.normpath("/" + path.lstrip("/"))
    assert is_inside(path, "/a/b") is (folded == "/a/b" or folded.startswith("/a/b/"))


def test_a_location_outside_every_root_is_refused_by_name() -> None:
    check_inside("file:///a/x", ["/b", "/a"])
    with pytest.raises(LocationRefused, match=r"file:///etc/passwd is outside the lake's roots \(/b, /a\)"):
        check_inside("file:///etc/passwd", ["/b", "/a"])
    with pytest.raises(LocationRefused, match="there are none"):
        check_inside("file:///a", [])
