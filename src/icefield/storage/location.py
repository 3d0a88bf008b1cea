"""Locations: where bytes are, as full URIs.

A local file is exactly `file:///abs/path`, with raw characters: Iceberg's paths are opaque strings, so blanks, `%`,
`?` and `#` are literal and nothing is percent-decoded. Other writers also write local files as `file:/x` and `/x`; all
three are read, the first is written.

`is_inside` compares strings and never accesses the disk: local paths are compared after resolving `.`, `..` and
repeated slashes, symbolic links are not followed (`LocalStore` follows them before it accesses a file). Keys of object
stores are compared as they are, because `a//b` and `a/../b` are distinct keys there.

Raises InvalidInput for text that is not a location, LocationRefused for one that may not be used.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from icefield.errors import InvalidInput, LocationRefused

LOCAL_SCHEME = "file"

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")
_CLIMBING = (".", "..")
_USUAL_LOCAL = f"{LOCAL_SCHEME}:///"


@dataclass(frozen=True)
class Location:
    """A parsed location; `path` begins with a slash, or is empty if nothing follows the authority."""

    scheme: str
    authority: str
    path: str

    def __str__(self) -> str:
        return f"{self.scheme}://{self.authority}{self.path}"


@lru_cache(maxsize=1024)
def parse_location(text: str) -> Location:
    """Parse a location; `/x`, `file:/x` and `file:///x` are the same local file."""
    if "\0" in text:
        raise InvalidInput(f"location {text!r} contains a NUL byte")
    if text.startswith("/"):
        return Location(LOCAL_SCHEME, "", text)
    if not (found := _SCHEME.match(text)):
        raise InvalidInput(f"location {text!r} is relative", hint="Write it in full, such as file:///data/lake")
    scheme, rest = found.group(1).lower(), text[found.end() :]
    if rest.startswith("//"):
        authority, slash, path = rest[2:].partition("/")
        return _checked(Location(scheme, authority, slash + path), text)
    return _checked(Location(scheme, "", rest), text)


def join_location(base: str, *parts: str) -> str:
    """Append parts to a location; a part never leads out of it."""
    location = parse_location(base)
    path = location.path.rstrip("/")
    for part in parts:
        inner = part.strip("/")
        if not inner or any(name in _CLIMBING for name in inner.split("/")):
            raise InvalidInput(f"cannot append {part!r} to {base}: it is empty or contains `..`")
        path = f"{path}/{inner}"
    return str(Location(location.scheme, location.authority, path))


def local_path(location: str) -> str:
    """Return the path of a local file, as it is in the location."""
    if location.startswith(_USUAL_LOCAL) and "\0" not in location:
        return location[len(_USUAL_LOCAL) - 1 :]
    parsed = parse_location(location)
    if parsed.scheme != LOCAL_SCHEME:
        raise LocationRefused(f"{location} is not a local file: its scheme is {parsed.scheme}")
    return parsed.path


def location_of_path(path: str) -> str:
    """Return the location of an absolute local path."""
    if not path.startswith("/"):
        raise InvalidInput(f"path {path!r} is relative", hint="Resolve it first")
    # In POSIX a path that begins with exactly two slashes is system-specific, and `file:////x` would be another path.
    return str(parse_location("/" + path.lstrip("/")))


def is_inside(location: str, root: str) -> bool:
    """Return whether a location is the root or below it, by comparing path components."""
    inner, outer = parse_location(location), parse_location(root)
    if (inner.scheme, inner.authority) != (outer.scheme, outer.authority):
        return False
    names, root_names = _names(inner), _names(outer)
    if inner.scheme != LOCAL_SCHEME and any(name in _CLIMBING for name in names):
        return False
    return names[: len(root_names)] == root_names


def check_inside(location: str, roots: Iterable[str]) -> None:
    """Raise LocationRefused unless the location is inside one of the roots."""
    allowed = tuple(roots)
    if not any(is_inside(location, root) for root in allowed):
        raise LocationRefused(
            f"{location} is outside the lake's roots ({', '.join(allowed) or 'there are none'})",
            hint="Add its directory to the roots if it belongs to the lake",
        )


def _checked(location: Location, text: str) -> Location:
    if location.scheme == LOCAL_SCHEME:
        if location.authority:
            raise InvalidInput(
                f"location {text!r} names the host {location.authority!r}",
                hint="A local file has three slashes: file:///",
            )
        if not location.path.startswith("/"):
            raise InvalidInput(f"location {text!r} is relative", hint="Write it in full, such as file:///data/lake")
    elif not location.authority:
        raise InvalidInput(
            f"location {text!r} names no bucket or host", hint=f"Write {location.scheme}://<bucket>/<key>"
        )
    return location


def _names(location: Location) -> list[str]:
    """Split a path into components: normalized for local files, unchanged elsewhere, except for a trailing slash."""
    if location.scheme != LOCAL_SCHEME:
        return location.path.removesuffix("/").split("/")
    names: list[str] = []
    for name in location.path.split("/"):
        if name == "..":
            del names[-1:]
        elif name not in ("", "."):
            names.append(name)
    return names
