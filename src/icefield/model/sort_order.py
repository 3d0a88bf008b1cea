"""Sort orders: how rows are ordered inside files. (spec: Sorting)

`parse_order_by(["ts desc nulls last", "bucket(16, id)"], schema)` parses the terms that users write.
Raises InvalidInput.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from icefield.deferred import deferred_imports
from icefield.errors import InvalidInput

with deferred_imports(__name__):
    from icefield.model.partition import find_source, parse_transform_call
    from icefield.types.schema import Schema
    from icefield.types.transforms import Transform
    from icefield.types.unknown_keys import UnknownKeys


class Direction(StrEnum):
    ASC = "asc"
    DESC = "desc"


class NullOrder(StrEnum):
    FIRST = "nulls-first"
    LAST = "nulls-last"


@dataclass(frozen=True)
class SortField:
    """One key of the order; a transform of several columns has the others in `other_source_ids`."""

    source_id: int
    transform: Transform
    direction: Direction
    null_order: NullOrder
    other_source_ids: tuple[int, ...] = ()
    unknown_keys: UnknownKeys = dataclasses.field(default=None, compare=False, repr=False)

    @property
    def source_ids(self) -> tuple[int, ...]:
        return (self.source_id, *self.other_source_ids)


@dataclass(frozen=True)
class SortOrder:
    """An ordered list of sort fields; order id 0 is always the unsorted order."""

    fields: tuple[SortField, ...] = ()
    order_id: int = 0
    unknown_keys: UnknownKeys = dataclasses.field(default=None, compare=False, repr=False)

    @property
    def is_unsorted(self) -> bool:
        return not self.fields


UNSORTED = SortOrder()
# Matched one by one from the end: a single pattern for the whole term would backtrack over every blank.
_NULLS = re.compile(r"\snulls\s+(first|last)\Z", re.IGNORECASE)
_DIRECTION = re.compile(r"\s(asc|desc)\Z", re.IGNORECASE)


def parse_order_by(strings: Sequence[str], schema: Schema) -> SortOrder:
    """Build a sort order from strings such as `ts`, `day(ts) desc`, `id asc nulls last`."""
    if isinstance(strings, str):
        raise InvalidInput("order_by takes a list of strings", hint=f"Write order_by=[{strings!r}]")
    fields = tuple(_parse_term(text, schema) for text in strings)
    return SortOrder(fields, order_id=1) if fields else UNSORTED


def _parse_term(text: str, schema: Schema) -> SortField:
    if not isinstance(text, str):
        raise InvalidInput(
            f"a sort term must be a string, not {text!r}", hint="Write it as: column [asc|desc] [nulls first]"
        )
    term, nulls_word = _split_off(text, _NULLS)
    term, direction_word = _split_off(term, _DIRECTION)
    transform, column = parse_transform_call(term)
    source = find_source(schema, column, transform, text)
    direction = Direction(direction_word or "asc")
    default = NullOrder.FIRST if direction is Direction.ASC else NullOrder.LAST
    nulls = NullOrder(f"nulls-{nulls_word}") if nulls_word else default
    return SortField(source.field_id, transform, direction, nulls)


def _split_off(text: str, ending: re.Pattern[str]) -> tuple[str, str | None]:
    """Return a term without a suffix that matches, and the word in the suffix, if there is one."""
    text = text.rstrip()
    found = ending.search(text)
    return (text[: found.start()], found[1].lower()) if found else (text, None)
