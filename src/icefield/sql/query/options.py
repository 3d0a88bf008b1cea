"""Options of a table in a query: the version that is read, or a range of snapshots.

    FROM shop.orders WITH ('branch' = 'audit')
    FROM shop.orders WITH ('start-snapshot-id' = 12, 'end-snapshot-id' = 19)             rows that were appended
    FROM shop.orders.changes WITH ('start-timestamp' = 1767225600000)                    rows that changed

The names are those of Iceberg's reads. An option without an effect is refused. Raises InvalidInput, Unsupported.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from icefield.arguments import whole_number
from icefield.errors import InvalidInput, Unsupported
from icefield.plan.versions import AsOf
from icefield.sql.session import Run
from icefield.sql.syntax.cursor import Cursor
from icefield.sql.syntax.place import Place
from icefield.sql.text.constants import constant_value

_REFS = ("branch", "tag")
_VERSIONS = ("snapshot-id", "as-of-timestamp", *_REFS)
_STARTS = ("start-snapshot-id", "start-timestamp")
_ENDS = ("end-snapshot-id", "end-timestamp")


@dataclass(frozen=True)
class SnapshotRange:
    """Snapshots after `start`, None for all, up to and including `end`, None for the newest."""

    start: AsOf | None = None
    end: AsOf | None = None


@dataclass(frozen=True)
class ReadOptions:
    """What the options of a table say: a version, or a range of snapshots."""

    as_of: AsOf | None = None
    range: SnapshotRange | None = None


def read_options(run: Run, place: Place) -> ReadOptions:
    """Read the options in parentheses."""
    given: dict[str, AsOf] = {}
    for key, value, at in _pairs(run, Cursor(place.source, place.start, place.end, run.parameters)):
        group = next((group for group in (_VERSIONS, _STARTS, _ENDS) if key in group), None)
        if group is None:
            known = ", ".join((*_VERSIONS, *_STARTS, *_ENDS))
            raise at.error(f"the option {key!r} has no effect here", hint=f"Known: {known}", kind=Unsupported)
        if any(other in given for other in group):
            raise at.error(f"only one of {', '.join(group)} can be given", kind=InvalidInput)
        given[key] = _version(key, value, at)
    starts, ends, versions = ([given[key] for key in group if key in given] for group in (_STARTS, _ENDS, _VERSIONS))
    if versions and (starts or ends):
        raise place.error("a read is of a version or of a range, not of both", kind=InvalidInput)
    if not starts and not ends:
        return ReadOptions(next(iter(versions), None))
    return ReadOptions(range=SnapshotRange(next(iter(starts), None), next(iter(ends), None)))


def _pairs(run: Run, cursor: Cursor) -> Iterator[tuple[str, object, Place]]:
    while not cursor.is_at_end:
        start, token = cursor.position, cursor.token()
        is_name = token is not None and token.is_name
        key = ".".join(cursor.name().parts) if is_name else cursor.string("the name of an option")
        cursor.accept("=")
        value = constant_value(run, cursor)
        yield key.lower(), value, cursor.since(start)
        if not cursor.is_at_end:
            cursor.expect(",")


def _version(key: str, value: object, place: Place) -> AsOf:
    if key in _REFS:
        return str(value)
    number = whole_number(str(value))
    if number is None:
        raise place.error(f"{key} is a number, not {value!r}", kind=InvalidInput)
    return datetime.fromtimestamp(number / 1000, UTC) if key.endswith("timestamp") else number
