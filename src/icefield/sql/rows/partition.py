"""PARTITION (day = DATE '2026-01-01', region): the values of partition columns. Raises InvalidInput."""

from collections.abc import Sequence
from dataclasses import dataclass

from icefield.errors import InvalidInput
from icefield.expr.query.tokens import quoted
from icefield.sql.query.constants import constant_value, read_value
from icefield.sql.session import Run
from icefield.sql.syntax.cursor import Cursor, Name
from icefield.sql.syntax.place import Place, pointing_at
from icefield.sql.syntax.strings import literal_of
from icefield.table.table import Table
from icefield.types.datatypes import NestedField


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


def partition_literals(run: Run, cursor: Cursor, partition: Sequence[PartitionValue]) -> list[str | None]:
    """Return the values of PARTITION as literals; None for a column whose values are in the rows."""
    values = []
    for each in partition:
        inside = None if each.value is None else cursor.inside(each.value)
        values.append(None if inside is None else literal_of(constant_value(run, inside)))
    return values


def partition_filter(run: Run, table: Table, cursor: Cursor, partition: Sequence[PartitionValue]) -> str:
    """Return the filter for the rows of the partitions that PARTITION gives values for."""
    columns, literals = partition_columns(table, partition), partition_literals(run, cursor, partition)
    tests = [
        f"{quoted(column.name)} <=> {literal}"
        for column, literal in zip(columns, literals, strict=True)
        if literal is not None
    ]
    return " AND ".join(tests) or "TRUE"
