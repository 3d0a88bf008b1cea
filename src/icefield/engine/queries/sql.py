"""The interface of SQL statements to Spark: queries over DataFrames, and what Spark says when it refuses one."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

# All names of DataFrames in a text have this length: that of the names that Spark Connect generates for them.
FRAME_NAME_LENGTH = 59


@dataclass(frozen=True)
class SparkText:
    """A text for Spark, and the DataFrames that its generated names stand for."""

    text: str
    frames: Mapping[str, Any] = field(default_factory=dict)
    named: Mapping[str, Any] = field(default_factory=dict)
    positional: Sequence[Any] = ()


class RefusedBySpark(Exception):
    """Spark refuses a text. start, stop: the part that is wrong, as positions in the text; None if not known."""

    def __init__(self, condition: str, message: str, start: int | None = None, stop: int | None = None) -> None:
        super().__init__(message)
        self.condition = condition
        self.message = message
        self.start = start
        self.stop = stop


class SparkSql(Protocol):
    """SQL in one Spark session."""

    def run(self, text: SparkText) -> Any:
        """Run a statement, a query only as far as its analysis; return its DataFrame. Raises RefusedBySpark."""
        ...

    def relations(self, text: str) -> list[str] | None:
        """Return the names of relations that Spark's parser finds, each as `[a, b]`; None if it cannot be asked.

        Raises RefusedBySpark for a text that is not a query.
        """
        ...

    def evaluate(self, text: SparkText) -> object:
        """Compute the only value of a query of one row and one column. Raises RefusedBySpark."""
        ...

    def has_temporary_view(self, name: str) -> bool:
        """Return whether the session has a temporary view of its own."""
        ...

    def explain(self, frame: Any, mode: str) -> str:
        """Return the plan of a DataFrame as text."""
        ...

    def keep(self, frame: Any, *, is_lazy: bool) -> Any:
        """Let Spark keep the rows of a DataFrame; return a DataFrame of the kept rows."""
        ...

    def release(self, frame: Any) -> None:
        """Let the rows go that `keep` kept."""
        ...
