"""The interface between the pruning of queries and Spark: what a session tells about a query before it is run.

A probe is an analysis and optimisation of the query over placeholders: empty relations with the columns of its tables.
In the optimised plan, filters are where they can be applied to a table.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from icefield.types.schema import Schema

# Strings that Spark casts to the date or time of the query.
_MOMENTS = re.compile(r"\b(now|today|yesterday|tomorrow)\b", re.IGNORECASE)

# The nodes of an expression as Spark writes them to JSON: a list in the order of a walk from its root.
ExpressionJson = list[dict[str, Any]]


@dataclass(frozen=True)
class Occurrence:
    """A table in the optimised plan. table: its index. condition: the filter right above it, if there is one."""

    table: int
    condition: ExpressionJson | None = None


@dataclass(frozen=True)
class Keys:
    """Rows of an occurrence matter only if the value of a column is also in a column of another occurrence."""

    target: int
    target_column: str
    source: int
    source_column: str


@dataclass(frozen=True)
class ProbedPlan:
    """Every occurrence of the tables in the optimised plan, and the keys that restrict them, by index.

    is_lasting: the same text gives the same plan again, as long as the settings of the session are the same.
    """

    occurrences: tuple[Occurrence, ...] = ()
    keys: tuple[Keys, ...] = ()
    is_lasting: bool = False


@dataclass(frozen=True)
class Settings:
    """What the session says about queries. fingerprint: of all its settings; None if it cannot be asked."""

    zone: str
    prunes: bool = True
    finds_keys: bool = True
    fingerprint: int | None = None


class Probe(Protocol):
    """A session that is asked about queries."""

    def settings(self) -> Settings:
        """Return the settings that matter."""
        ...

    def offsets(self, seconds: Sequence[int]) -> list[int]:
        """Return the offset of the session's time zone from UTC, in seconds, at moments in seconds since 1970."""
        ...

    def plan(self, schemas: Sequence[Schema], analyse: Callable[[Sequence[Any]], Any]) -> ProbedPlan | None:
        """Probe a query. None if the session does not show its plans, or if they depend on the time of the query.

        analyse: returns the DataFrame of the query, given a DataFrame for each table.
        """
        ...


def names_moment(text: str) -> bool:
    """Return whether a text may have a string that Spark casts to a moment of the query, such as `today`."""
    return _MOMENTS.search(text) is not None
