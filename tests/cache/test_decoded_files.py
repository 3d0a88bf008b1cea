"""Files that were decoded already: known by their bytes, never by their location alone."""

from collections.abc import Callable

from icefield.cache.decoded_files import LARGEST_OF_MAX, DecodedFiles


def counting() -> tuple[list[str], Callable[[bytes, str], list[bytes]]]:
    """Return what was decoded, and a function that decodes to something new each time."""
    seen: list[str] = []

    def decode(data: bytes, location: str) -> list[bytes]:
        seen.append(location)
        return [data]

    return seen, decode


def test_the_same_bytes_at_the_same_place_are_decoded_once() -> None:
    seen, decode = counting()
    files = DecodedFiles()
    first = files.decoded(b"one", "a", decode)
    assert files.decoded(bytes(bytearray(b"one")), "a", decode) is first
    assert seen == ["a"]


def test_other_bytes_at_the_same_place_are_decoded_anew() -> None:
    _, decode = counting()
    files = DecodedFiles()
    files.decoded(b"one", "a", decode)
    assert files.decoded(b"two", "a", decode) == [b"two"]
    assert files.decoded(b"one", "a", decode) == [b"one"]
    assert files.held_bytes == 3


def test_the_same_bytes_elsewhere_are_decoded_for_that_place() -> None:
    seen, decode = counting()
    files = DecodedFiles()
    files.decoded(b"one", "a", decode)
    files.decoded(b"one", "b", decode)
    assert seen == ["a", "b"]


def test_what_is_decoded_as_one_thing_is_not_taken_for_another() -> None:
    files = DecodedFiles()
    assert files.decoded(b"one", "a", lambda data, _: len(data)) == 3
    assert files.decoded(b"one", "a", lambda data, _: data.decode()) == "one"


def test_those_used_longest_ago_go_first() -> None:
    seen, decode = counting()
    files = DecodedFiles(max_bytes=LARGEST_OF_MAX)
    for location in ("a", "b", "c", "d", "a", "e"):
        files.decoded(b"x", location, decode)
    assert files.held_bytes == LARGEST_OF_MAX
    files.decoded(b"x", "a", decode)
    files.decoded(b"x", "b", decode)
    assert seen == ["a", "b", "c", "d", "e", "b"]


def test_a_file_that_would_take_the_room_of_many_is_not_kept() -> None:
    seen, decode = counting()
    files = DecodedFiles(max_bytes=LARGEST_OF_MAX)
    for _ in range(2):
        assert files.decoded(b"xx", "a", decode) == [b"xx"]
    assert seen == ["a", "a"]
    assert files.held_bytes == 0


def test_nothing_is_kept_after_a_failure() -> None:
    files = DecodedFiles()

    def fail(_data: bytes, _location: str) -> int:
        raise ValueError

    for _ in range(2):
        try:
            files.decoded(b"one", "a", fail)
        except ValueError:
            continue
        raise AssertionError
    assert files.held_bytes == 0
