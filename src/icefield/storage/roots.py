"""Find locations that are the same directory, or inside each other, however they are written.

    file:/lake/a/../b/   FILE:///lake/b   /lake/link-to-b     →  file:///lake/b
    s3a://bucket/lake//b                                      →  s3://bucket/lake/b

`resolve_location` follows symbolic links on the local disk. `Roots` is stricter than any single reader: some
percent-decode locations and some do not, so two roots overlap if they do in either interpretation.
"""

import os
from collections.abc import Iterable, Iterator
from urllib.parse import unquote

from icefield.storage.location import LOCAL_SCHEME, Location, parse_location

# Writers use several schemes for one store.
_SAME_STORE = {"s3a": "s3", "s3n": "s3", "gcs": "gs", "abfs": "az", "abfss": "az", "wasb": "az", "wasbs": "az"}


def resolve_location(location: str) -> str:
    """Return the normalized location: links are followed, `.`, `..` and redundant slashes are resolved."""
    parsed = parse_location(location)
    path = os.path.realpath(parsed.path) if parsed.scheme == LOCAL_SCHEME else parsed.path
    scheme = _SAME_STORE.get(parsed.scheme, parsed.scheme)
    return str(Location(scheme, parsed.authority.lower(), _folded(path)))


class Roots:
    """The directories of one owner, to be compared with those of other owners."""

    def __init__(self, locations: Iterable[str]) -> None:
        self.spellings = frozenset(text for location in locations for text in _readings(location))

    def find_overlap(self, other: "Roots") -> str | None:
        """Return a directory of the other that is inside one of these, or contains it; None if there is none."""
        for mine in self.spellings:
            for theirs in other.spellings:
                if mine == theirs or mine.startswith(f"{theirs}/") or theirs.startswith(f"{mine}/"):
                    return theirs
        return None

    def hold(self, location: str) -> bool:
        """Return whether a location is one of these directories, or inside one."""
        return any(
            text == root or text.startswith(f"{root}/") for text in _readings(location) for root in self.spellings
        )


def _readings(location: str) -> Iterator[str]:
    resolved = resolve_location(location)
    yield resolved
    if "%" in resolved:
        parsed = parse_location(resolved)
        yield str(Location(parsed.scheme, parsed.authority, _folded(unquote(parsed.path))))


def _folded(path: str) -> str:
    names: list[str] = []
    for name in path.split("/"):
        if name == "..":
            del names[-1:]
        elif name not in ("", "."):
            names.append(name)
    return "".join(f"/{name}" for name in names)
