"""Determine the partition of an added file: from the caller, from its path, or from its footer.

A path gives it as in Hive, by directories named `column=value`. A footer proves it if the minimum and the maximum of
the source column are in one partition. The caller and the path must not contradict the footer.
Raises InvalidInput for a partition that cannot be determined, or that is contradicted.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from urllib.parse import unquote

from icefield.errors import InvalidInput
from icefield.model.partition import PartitionField, PartitionSpec
from icefield.types.datatypes import PrimitiveType, Value
from icefield.types.schema import Schema
from icefield.types.transforms import Bucket, Identity, Unknown, Void
from icefield.types.values.python import python_value

HIVE_NULL = "__HIVE_DEFAULT_PARTITION__"
GivenPartition = Mapping[str, object]


@dataclass(frozen=True)
class ColumnRange:
    """What a footer proves about a column: its bounds (None if all values are null), and whether any value is null."""

    bounds: tuple[Value, Value] | None
    has_nulls: bool


# By field id; None if the footer proves nothing, or the file does not have the column.
RangeOf = Callable[[int], ColumnRange | None]


@dataclass(frozen=True)
class PartitionFinder:
    """Finds the partitions of files of one table."""

    schema: Schema
    spec: PartitionSpec
    given: GivenPartition

    def __post_init__(self) -> None:
        known = {name for f in self.spec.fields for name in self._names(f)}
        for name in self.given:
            if name not in known:
                raise InvalidInput(f"the table has no partition field {name!r} (fields: {', '.join(sorted(known))})")

    def find(self, location: str, range_of: RangeOf) -> tuple[Value | None, ...]:
        """Return the partition of the file at a location."""
        directories = _hive_directories(location)
        return tuple(self._value(f, location, directories, range_of(f.source_id)) for f in self.spec.fields)

    def _value(
        self, field: PartitionField, location: str, directories: Mapping[str, str], known: ColumnRange | None
    ) -> Value | None:
        if isinstance(field.transform, Void):
            return None
        if isinstance(field.transform, Unknown):
            raise InvalidInput(f"cannot write to a table that is partitioned by the transform {field.transform}")
        proved = self._proved(field, known)
        names = self._names(field)
        said = next((self.given[n] for n in names if n in self.given), _NOT_SAID)
        if said is _NOT_SAID and isinstance(field.transform, Identity):
            said = next((_from_hive(directories[n]) for n in names if n in directories), _NOT_SAID)
        if said is _NOT_SAID:
            if not proved:
                raise InvalidInput(
                    f"cannot determine partition {field.name!r} of {location}: {self._why(field, known)}",
                    hint=f"Pass partition={{{field.name!r}: …}}",
                )
            return proved[0]
        kind = field.transform.result_type(self._source_type(field))
        try:
            value = python_value(said, kind)
        except ValueError as error:
            raise InvalidInput(f"the partition {field.name}={said!r} is not a valid {kind}: {error}") from error
        if known is not None and (not proved or proved[0] != value):
            raise InvalidInput(
                f"{location} does not belong to partition {field.name}={said}: {self._why(field, known)}"
            )
        return value

    def _proved(self, field: PartitionField, known: ColumnRange | None) -> list[Value | None]:
        """Return the partition value that all rows must have, or None."""
        if known is None:
            return []
        if known.bounds is None:
            return [None]
        kind = self._source_type(field)
        lower, upper = (field.transform.apply_value(bound, kind) for bound in known.bounds)
        settled = known.bounds[0] == known.bounds[1] if isinstance(field.transform, Bucket) else lower == upper
        return [lower] if settled and not known.has_nulls else []

    def _why(self, field: PartitionField, known: ColumnRange | None) -> str:
        column = self.schema.name_of(field.source_id)
        if known is None:
            return f"its footer has no bounds for column {column!r}"
        if known.bounds is None:
            return f"its column {column!r} holds only nulls"
        nulls = ", and nulls" if known.has_nulls else ""
        return f"its column {column!r} runs from {known.bounds[0]!r} to {known.bounds[1]!r}{nulls}"

    def _names(self, field: PartitionField) -> tuple[str, ...]:
        """Return the names of a partition field; an identity field also has that of its column."""
        source = self.schema.paths.get(field.source_id)
        return (field.name, ".".join(source)) if source and isinstance(field.transform, Identity) else (field.name,)

    def _source_type(self, field: PartitionField) -> PrimitiveType:
        return self.spec.source_type(field, self.schema)


_NOT_SAID = object()


def _hive_directories(location: str) -> dict[str, str]:
    parts = [part.partition("=") for part in location.split("/")[:-1]]
    return {unquote(name): value for name, sign, value in parts if sign}


def _from_hive(text: str) -> str | None:
    return None if text == HIVE_NULL else unquote(text)
