"""A table to be given to other engines: how it is written, what is in it then, and what they are asked about it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import pyarrow as pa
from tests.peers.normal import Row, normal_rows
from tests.peers.predicates import Predicate

from icefield import Lake, Table

NAMESPACE = "peers"
KEY = "id"  # every table has this column, with another value in each row


@dataclass(frozen=True)
class Append:
    """Add rows."""

    rows: pa.Table


@dataclass(frozen=True)
class Overwrite:
    """Replace the rows that match, or all."""

    rows: pa.Table
    where: Predicate | None = None


@dataclass(frozen=True)
class TableCase:
    """A table, how it is written, and thereby what is in it."""

    name: str
    schema: pa.Schema
    steps: Sequence[Append | Overwrite]
    partition_by: Sequence[str] = ()
    properties: Mapping[str, str] = field(default_factory=dict)
    asks: Sequence[Predicate] = ()

    @property
    def full_name(self) -> str:
        return f"{NAMESPACE}.{self.name}"

    def build(self, lake: Lake) -> Table:
        """Write the table."""
        table = lake.create_table(
            self.full_name, self.schema, partition_by=self.partition_by, properties=dict(self.properties)
        )
        for step in self.steps:
            if isinstance(step, Append):
                table.append(step.rows)
            else:
                table.overwrite(step.rows, where=step.where.icefield() if step.where else None, check_rows=False)
        return table

    def versions(self) -> list[pa.Table]:
        """Return what is in the table after each step."""
        found = [self.schema.empty_table()]
        for step in self.steps:
            found.append(pa.concat_tables([_kept(found[-1], step), step.rows]))
        return found[1:]

    @cached_property
    def rows(self) -> pa.Table:
        """What is in the table after all steps."""
        return self.versions()[-1] if self.steps else self.schema.empty_table()

    def normal_rows(self) -> list[Row]:
        """Return the rows in the form in which they are compared."""
        return normal_rows(self.rows, self.schema)

    def keys_matching(self, predicate: Predicate) -> list[int]:
        """Return the keys of the rows that match, without those whose value is NaN, of which engines differ."""
        rows = self.rows
        hits = zip(rows.column(KEY).to_pylist(), predicate.matches(rows), predicate.is_nan(rows), strict=True)
        return sorted(key for key, match, nan in hits if match and not nan)

    def keys_of_nan(self, predicate: Predicate) -> set[int]:
        """Return the keys of the rows that have NaN in the predicate's column."""
        rows = self.rows
        return {key for key, nan in zip(rows.column(KEY).to_pylist(), predicate.is_nan(rows), strict=True) if nan}


def in_parts(rows: pa.Table, size: int) -> list[Append | Overwrite]:
    """Append rows a few at a time."""
    return [Append(rows.slice(start, size)) for start in range(0, rows.num_rows, size)]


def _kept(rows: pa.Table, step: Append | Overwrite) -> pa.Table:
    if isinstance(step, Append):
        return rows
    if step.where is None:
        return rows.slice(0, 0)
    return rows.filter(pa.array([not hit for hit in step.where.matches(rows)], pa.bool_()))
