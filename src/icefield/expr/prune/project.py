"""Project a filter on rows to a filter on partition values, through the partition transforms. (spec: Scan Planning)

`project_inclusive`: if a row matches, its partition matches. `project_strict`: if a partition matches, all of its rows
match. There is one set of rules, for the inclusive projection; the strict one excludes the partitions of the
complement.

    >>> from icefield.expr.bind.bind import bind
    >>> from icefield.expr.render.describe import describe
    >>> from icefield.types.datatypes import TimestampType
    >>> from icefield.types.text import parse_schema
    >>> where = bind("ts >= '2026-01-05 12:00:00'", parse_schema("ts timestamp"))
    >>> by_day = [PartitionTerm(1000, 1, Day(), TimestampType(), "ts_day")]
    >>> describe(project_inclusive(where, by_day))  # days to read
    "ts_day >= DATE '2026-01-05'"
    >>> describe(project_strict(where, by_day))  # days in which every row matches
    "ts_day > DATE '2026-01-05'"
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from icefield.expr.bind.bound import (
    FALSE,
    TRUE,
    AllOf,
    AnyOf,
    Bound,
    Compare,
    Constant,
    InSet,
    IsNaN,
    IsNull,
    Leaf,
    NotNaN,
    NotNull,
    Reference,
    all_of,
    any_of,
    columns_of,
    complement,
    one_of,
)
from icefield.expr.parse.ast import Operator
from icefield.expr.prune.project_numbers import project_steps, steps_of
from icefield.expr.prune.project_strings import project_cut
from icefield.types.datatypes import BinaryType, DateType, PrimitiveType, StringType, Value
from icefield.types.transforms import Bucket, Day, Identity, Transform, Truncate, Unknown, Void


@dataclass(frozen=True)
class PartitionTerm:
    """A field of the partition tuple: its source column and transform. The name is for display."""

    field_id: int
    source_id: int
    transform: Transform
    source_type: PrimitiveType
    name: str = ""

    @property
    def reference(self) -> Reference:
        """The partition field as a column of the partition tuple."""
        kind = self.transform.result_type(self.source_type)
        return Reference(self.field_id, kind, (self.name or str(self.field_id),))


def project_inclusive(expression: Bound, terms: Sequence[PartitionTerm]) -> Bound:
    """Return an expression over partition values that is true for the partition of every matching row."""
    match expression:
        case Constant():
            return expression
        case AllOf(parts):
            return all_of(*(project_inclusive(part, terms) for part in parts))
        case AnyOf(parts):
            return any_of(*(project_inclusive(part, terms) for part in parts))
        case Leaf():
            source = expression.reference.field_id
            projected = [_project_leaf(expression, term) for term in terms if term.source_id == source]
            return all_of(*projected) if projected else TRUE


def project_strict(expression: Bound, terms: Sequence[PartitionTerm]) -> Bound:
    """Return an expression over partition values that is true only for partitions in which every row matches."""
    if isinstance(expression, Constant):
        return expression
    columns = columns_of(expression)
    if not any(term.source_id in columns for term in terms):
        return FALSE
    return complement(project_inclusive(complement(expression), terms))


def _project_leaf(leaf: Leaf, term: PartitionTerm) -> Bound:
    transform, source = term.transform, term.source_type
    if isinstance(transform, Void | Unknown) or not transform.fits(source):
        return TRUE
    if isinstance(transform, Identity):
        return replace(leaf, reference=term.reference)
    match leaf:
        case IsNull():
            return IsNull(term.reference)
        case NotNull():
            return NotNull(term.reference)
        case IsNaN() | NotNaN():
            return TRUE
    if isinstance(transform, Bucket):
        return _project_bucket(leaf, term)
    if isinstance(transform, Truncate) and isinstance(source, StringType | BinaryType):
        return project_cut(leaf, term.reference, transform.width)
    if isinstance(transform, Day) and isinstance(source, DateType):
        return replace(leaf, reference=term.reference)
    return project_steps(leaf, term.reference, steps_of(transform, source))


def _project_bucket(leaf: Leaf, term: PartitionTerm) -> Bound:
    reference, source = term.reference, term.source_type
    match leaf:
        case Compare(_, Operator.EQ, value):
            return one_of(reference, _buckets(term.transform, (value,), source))
        case InSet(_, values):
            return one_of(reference, _buckets(term.transform, values, source))
        case _:
            return NotNull(reference)


def _buckets(transform: Transform, values: Sequence[Value], source: PrimitiveType) -> list[Value]:
    found = (transform.apply_value(value, source) for value in values)
    return [value for value in found if value is not None]
