"""What there is to say about a lake, checked once, whoever says it: a call, the environment or a file.

`parse_settings` reads what one source says, `merge_settings` makes one `LakeSettings` of several. Values may be
secrets, so that no message and no repr shows one.

Raises InvalidInput, which names the source and the setting.
"""

import difflib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from icefield.errors import InvalidInput
from icefield.secrets import protect, secrets_of, secrets_of_environment, secrets_of_text

CATALOG_NAME = "icefield"
PROPERTIES = "properties"


@dataclass(frozen=True)
class LakeSettings:
    """One lake.

    target: a directory or a URL, see `config.connect`. catalog: its name where several share a database.
    create: make an empty catalog even where tables lie without one.
    """

    target: str = field(repr=False)
    warehouse: str | None = None
    catalog: str = CATALOG_NAME
    roots: Sequence[str] = ()
    durable: bool = True
    properties: Mapping[str, str] = field(default_factory=dict, repr=False)
    create: bool = False

    def secrets(self, environment: Mapping[str, str]) -> list[str]:
        """Return what no message about the lake may show."""
        return [*secrets_of(self.properties), *secrets_of_text(self.target), *secrets_of_environment(environment)]


def parse_settings(said: Mapping[str, object], source: str) -> dict[str, Any]:
    """Check what a source says about a lake; only what is said is returned."""
    return {key: _parser(key, source)(value, f"{source}: {key}") for key, value in said.items()}


def merge_settings(parsed: Iterable[Mapping[str, Any]]) -> LakeSettings:
    """Put the sources together, later ones before earlier ones; properties one by one."""
    merged: dict[str, Any] = {}
    for source in parsed:
        properties = {**merged.get(PROPERTIES, {}), **source.get(PROPERTIES, {})}
        merged = {**merged, **source, PROPERTIES: properties}
    return LakeSettings(**merged)


def suggest(word: str, known: Iterable[str]) -> str:
    """Say what was probably meant, or what there is."""
    names = sorted(known)
    close = difflib.get_close_matches(word, names, 1)
    return f"Did you mean {close[0]!r}?" if close else f"There are: {', '.join(names) or 'none'}"


def _parser(key: str, source: str) -> Callable[[object, str], Any]:
    if key not in _PARSERS:
        raise InvalidInput(f"{source}: unknown setting {key!r}", hint=suggest(key, _PARSERS))
    return _PARSERS[key]


def _text(value: object, where: str) -> str:
    if not isinstance(value, str) or not value:
        raise _wrong(where, "a string", value)
    return value


def _truth(value: object, where: str) -> bool:
    if not isinstance(value, bool):
        raise _wrong(where, "true or false", value)
    return value


def _texts(value: object, where: str) -> tuple[str, ...]:
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise _wrong(where, "a list of strings", value)
    return tuple(_text(item, where) for item in value)


def _properties(value: object, where: str) -> dict[str, str]:
    if not isinstance(value, Mapping):
        raise _wrong(where, "a table of properties", value)
    return protect(dict(_flatten(value, where)))


def _flatten(table: Mapping[object, object], where: str) -> Iterable[tuple[str, str]]:
    """Read `s3.endpoint = ...` as TOML does, a table in a table, like `"s3.endpoint" = ...`."""
    for key, value in table.items():
        if not isinstance(key, str):
            raise _wrong(f"{where}: a name", "a string", key)
        if isinstance(value, Mapping):
            for inner, text in _flatten(value, f"{where}.{key}"):
                yield f"{key}.{inner}", text
        elif isinstance(value, bool):
            yield key, "true" if value else "false"
        elif isinstance(value, int):
            yield key, str(value)
        else:
            yield key, _text(value, f"{where}.{key}")


def _wrong(where: str, wanted: str, value: object) -> InvalidInput:
    found = "empty" if value == "" else f"of type {type(value).__name__}"
    return InvalidInput(f"{where} must be {wanted}, but is {found}")


_PARSERS: Mapping[str, Callable[[object, str], Any]] = {
    "target": _text,
    "warehouse": _text,
    "catalog": _text,
    "roots": _texts,
    "durable": _truth,
    "create": _truth,
    PROPERTIES: _properties,
}
