"""The few keys of a metadata file that identify its table or view, read without decoding the rest.

`icefield-entry` is icefield's own key: the catalog entry that a metadata file was written for, and the first metadata
file in the history of that entry. Other writers ignore it and do not write it.

Raises CorruptFile.
"""

import uuid
from typing import TypeVar

import msgspec

from icefield.codec.json.keys import inflate_json
from icefield.errors import CorruptFile

ENTRY_KEY = "icefield-entry"
Outline = TypeVar("Outline", bound="MetadataOutline")


class CatalogEntry(msgspec.Struct, frozen=True):
    """The catalog entry whose history a metadata file belongs to.

    entry: the catalog and the name in it, as a digest. since: the name of the first metadata file of that history.
    """

    entry: str
    since: str


class MetadataOutline(msgspec.Struct, frozen=True, rename="kebab"):
    """What identifies the owner of a metadata file; the uuid is None in v1 tables without one."""

    location: str
    table_uuid: uuid.UUID | None = None
    view_uuid: uuid.UUID | None = None
    properties: dict[str, str] | None = None
    icefield_entry: CatalogEntry | None = None


class LoggedFile(msgspec.Struct, frozen=True, rename="kebab"):
    """An entry of a metadata log."""

    metadata_file: str


class LoggedOutline(MetadataOutline, frozen=True, rename="kebab"):
    """The outline of a metadata file, with its log."""

    metadata_log: tuple[LoggedFile, ...] = ()


def decode_outline(data: bytes, location: str) -> MetadataOutline:
    """Decode the outline of a metadata file, plain or gzipped."""
    return _decode(data, location, MetadataOutline)


def decode_logged_outline(data: bytes, location: str) -> LoggedOutline:
    """Decode the outline of a metadata file with its log."""
    return _decode(data, location, LoggedOutline)


def _decode(data: bytes, location: str, kind: type[Outline]) -> Outline:
    try:
        return msgspec.json.decode(inflate_json(data, location), type=kind)
    except (ValueError, RecursionError) as error:
        raise CorruptFile(location, f"it is not valid metadata: {error}") from error


def encode_entry(entry: CatalogEntry) -> bytes:
    """Encode the value of ENTRY_KEY."""
    return msgspec.json.encode(entry)


def decode_entry(raw: bytes | None) -> CatalogEntry | None:
    """Decode the value of ENTRY_KEY; None if it is malformed."""
    try:
        return None if raw is None else msgspec.json.decode(raw, type=CatalogEntry)
    except ValueError:
        return None
