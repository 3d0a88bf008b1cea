"""Resolve the version of a table that a scan reads: a snapshot id, a time, a branch or a tag.

Raises NoSuchSnapshot, InvalidInput.
"""

import datetime
from dataclasses import dataclass

from icefield.arguments import whole_number
from icefield.errors import InvalidInput
from icefield.model.metadata import TableMetadata
from icefield.model.snapshot import MAIN, RefKind, Snapshot
from icefield.types.schema import Schema

AsOf = int | str | datetime.datetime


@dataclass(frozen=True)
class ResolvedVersion:
    """A version of the table; snapshot None is the empty table before its first commit."""

    snapshot: Snapshot | None
    schema: Schema


def resolve_version(metadata: TableMetadata, as_of: AsOf | None) -> ResolvedVersion:
    """Resolve `as_of`: None is the head of main, an int is a snapshot id, a string is a ref, an id or a time.

    A branch is read with the table's current schema, a tag or an older snapshot with its own. (As Iceberg Java does.)
    """
    if as_of is None or as_of == MAIN:
        return ResolvedVersion(metadata.current_snapshot, metadata.schema)
    if isinstance(as_of, bool) or not isinstance(as_of, int | str | datetime.datetime):
        raise InvalidInput(
            f"as_of must be a snapshot id, a time or a ref, not {as_of!r}",
            hint="Give a time as a datetime with its zone",
        )
    if isinstance(as_of, int):
        return _at_snapshot(metadata, metadata.snapshot_by_id(as_of))
    if isinstance(as_of, datetime.datetime):
        return _at_snapshot(metadata, metadata.snapshot_as_of(to_millis(as_of)))
    if as_of in metadata.refs:
        ref = metadata.refs[as_of]
        head = metadata.snapshot_by_id(ref.snapshot_id)
        return ResolvedVersion(head, metadata.schema) if ref.kind is RefKind.BRANCH else _at_snapshot(metadata, head)
    number, moment = whole_number(as_of), _parse_time(as_of)
    if number is not None and (moment is None or metadata.snapshots.find(number) is not None):
        return _at_snapshot(metadata, metadata.snapshot_by_id(number))
    if moment is None:
        metadata.ref_head(as_of)  # raises an error that lists the refs
    return _at_snapshot(metadata, metadata.snapshot_as_of(to_millis(moment)))  # type: ignore[arg-type]


def _at_snapshot(metadata: TableMetadata, snapshot: Snapshot) -> ResolvedVersion:
    schema_id = metadata.current_schema_id if snapshot.schema_id is None else snapshot.schema_id
    return ResolvedVersion(snapshot, metadata.schema_by_id(schema_id))


def _parse_time(text: str) -> datetime.datetime | None:
    try:
        return datetime.datetime.fromisoformat(text)
    except ValueError:
        return None


def parse_moment(value: object, name: str) -> datetime.datetime:
    """Parse a time given as a datetime or an ISO string. Raises InvalidInput."""
    moment = _parse_time(value) if isinstance(value, str) else value
    if not isinstance(moment, datetime.datetime):
        raise InvalidInput(
            f"{name} must be a time, not {value!r}",
            hint="Give a datetime, or a string such as 2026-01-31T12:00:00+00:00",
        )
    return moment


def to_millis(moment: datetime.datetime) -> int:
    """Return milliseconds since the epoch; a time without a zone is UTC."""
    aware = moment if moment.tzinfo else moment.replace(tzinfo=datetime.UTC)
    return (aware - datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)) // datetime.timedelta(milliseconds=1)
