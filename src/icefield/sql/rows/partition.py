"""PARTITION (day = DATE '2026-01-01', region): the values of partition columns. Raises InvalidInput."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, tzinfo
from decimal import Decimal

from icefield.errors import InvalidInput
from icefield.expr.parse.ast import Predicate
from icefield.expr.parse.datetimes import parse_date, parse_timestamp
from icefield.expr.query.tokens import quoted
from icefield.sql.filters.local_times import with_local_times
from icefield.sql.session import Run
from icefield.sql.syntax.cursor import Cursor, Name
from icefield.sql.syntax.place import Place, pointing_at
from icefield.sql.syntax.strings import literal_of
from icefield.sql.text.constants import constant_value, read_value, session_zone
from icefield.table.table import Table
from icefield.types.datatypes import (
    BooleanType,
    DateType,
    DecimalType,
    IntegerType,
    LongType,
    NestedField,
    StringType,
    TimestampType,
    TimestamptzType,
    Type,
)


@dataclass(frozen=True)
class PartitionValue:
    """A partition column, and its value as written; None if the rows have it."""

    column: Name
    value: Place | None


def parse_partition(cursor: Cursor) -> tuple[PartitionValue, ...]:
    """Read PARTITION (...)."""
    cursor.expect("partition")
    cursor.expect("(")
    found: list[PartitionValue] = []
    while True:
        column = cursor.name("a partition column")
        value = read_value(cursor) if cursor.accept_any("=", "==") else None
        found.append(PartitionValue(column, value))
        if cursor.accept(")"):
            return tuple(found)
        cursor.expect(",")


def partition_columns(table: Table, partition: Sequence[PartitionValue]) -> list[NestedField]:
    """Return the columns of PARTITION, each of which must be a partition field without a transform, and named once."""
    spec, schema = table.spec, table.schema
    identities = {schema.by_id[f.source_id].name: f for f in spec.fields if str(f.transform) == "identity"}
    found: list[NestedField] = []
    for each in partition:
        with pointing_at(each.column.place):
            name = str(each.column)
            field = next((schema.find_field(known) for known in identities if known.lower() == name.lower()), None)
            if field is None:
                known = ", ".join(identities) or "none"
                raise InvalidInput(
                    f"{name!r} is not a partition column of {table.name} (partition columns: {known})",
                    hint="Use REPLACE WHERE for other columns, and for partition fields with a transform",
                )
            if field in found:
                raise InvalidInput(f"{name!r} is in PARTITION twice")
            found.append(field)
    return found


def partition_literals(
    run: Run, cursor: Cursor, partition: Sequence[PartitionValue], columns: Sequence[NestedField]
) -> list[str | None]:
    """Return the values of PARTITION as literals, cast to the types of their columns, as in Spark.

    None for a column whose values are in the rows.
    """
    zone, found = session_zone(run), list[str | None]()
    for each, column in zip(partition, columns, strict=True):
        if each.value is None:
            found.append(None)
            continue
        value = constant_value(run, cursor.inside(each.value))
        found.append(_literal(value, column, each.value, zone))
    return found


def _literal(value: object, column: NestedField, place: Place, zone: tzinfo | None) -> str:
    """Write a value as a literal of a column's type; one that Spark alone can cast stays as it is."""
    kind = column.type
    if isinstance(kind, StringType) and isinstance(value, bool | int | date) and not isinstance(value, datetime):
        return literal_of(str(value).lower() if isinstance(value, bool) else str(value))
    if not isinstance(value, str) or type(kind) not in _FROM_TEXT:
        return literal_of(value)
    try:
        return _FROM_TEXT[type(kind)](value.strip(), zone)
    except (ValueError, ArithmeticError, LookupError) as error:
        raise place.error(
            f"{value!r} is not a value of column {column.name!r} of type {kind}", kind=InvalidInput
        ) from error


def _moment(text: str, zone: tzinfo | None) -> str:
    """Write a time, in the zone of the session if it has none; left to Spark if only it knows that zone."""
    found = parse_timestamp(text)
    if not found.zoned and zone is None:
        return f"TIMESTAMP '{text}'"
    local = datetime(1970, 1, 1, tzinfo=UTC if found.zoned else zone) + timedelta(microseconds=found.micros)
    return literal_of(local)


def _local_time(text: str, _zone: tzinfo | None) -> str:
    return literal_of(datetime(1970, 1, 1) + timedelta(microseconds=parse_timestamp(text).micros))


_FROM_TEXT: Mapping[type[Type], Callable[[str, tzinfo | None], str]] = {
    DateType: lambda text, _: literal_of(date(1970, 1, 1) + timedelta(days=parse_date(text).days)),
    TimestamptzType: _moment,
    TimestampType: _local_time,
    IntegerType: lambda text, _: literal_of(int(text)),
    LongType: lambda text, _: literal_of(int(text)),
    DecimalType: lambda text, _: literal_of(Decimal(text)),
    BooleanType: lambda text, _: literal_of({"true": True, "false": False}[text.lower()]),
}


def partition_filter(run: Run, table: Table, cursor: Cursor, partition: Sequence[PartitionValue]) -> Predicate | str:
    """Return the filter for the rows of the partitions that PARTITION gives values for."""
    columns = partition_columns(table, partition)
    literals = partition_literals(run, cursor, partition, columns)
    tests = [
        f"{quoted(column.name)} <=> {literal}"
        for column, literal in zip(columns, literals, strict=True)
        if literal is not None
    ]
    return with_local_times(" AND ".join(tests) or "TRUE", table.schema, session_zone(run))
