"""Checks of a branch before it is published, with names. A check has one of three forms:

    amount IS NULL OR amount < 0                      a filter, which must match no row
    count(*) >= 1000 AND null_share(email) <= 0.01    a condition over metrics, which must be true
    SELECT id FROM shop.orders GROUP BY id HAVING count(*) > 1    a query, which must return no row

Checks are properties of the table, `icefield.check.NAME`, or given by the caller. They are run on one snapshot of the
branch, and only that snapshot is published. Queries are run by DuckDB, which reaches tables of the lake and nothing
else: whoever can set properties cannot have files of the publishing process read.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from typing import Protocol

from icefield.errors import CheckFailed, InvalidInput, NotFound, Unsupported
from icefield.expr.bind.bind import bind
from icefield.expr.parse.ast import Predicate
from icefield.expr.query.lexer import lex
from icefield.history.metrics import MeasuredRows, MetricCondition, parse_metrics, sample_filter
from icefield.model.metadata import TableMetadata
from icefield.showing import row_text
from icefield.types.schema import Schema

CHECK_PREFIX = "icefield.check."
SHOWN_ROWS = 5
SAID_ROWS = 3  # in the message
_QUERIES = ("select", "with")

Sample = Sequence[Mapping[str, object]]


@dataclass(frozen=True)
class CheckFailure:
    """A check that a branch breaks.

    Attributes:
        name: The check.
        where: Its filter, condition or query.
        rows: How many rows break it: those that the filter matches or the query returns. For a condition over metrics,
            how many rows a metric is about, such as those with a null; 0 if it is about all.
        sample: Some of these rows.
        metrics: The metrics of a condition, by name.
    """

    name: str
    where: str
    rows: int
    sample: Sample
    metrics: Mapping[str, object] = field(default_factory=dict)

    def __str__(self) -> str:
        measured = ", ".join(f"{metric} is {value}" for metric, value in self.metrics.items())
        some = "; ".join(map(row_text, self.sample[:SAID_ROWS]))
        rows = f"{self.rows:,} row(s)" + (f", such as {some}" if some else "")
        found = [measured] if measured else []
        if some or not measured:
            found.append(rows)
        return f"{self.name} ({self.where}): {': '.join(found)}"

    def as_dict(self) -> dict[str, object]:
        """Return plain values."""
        return {
            "name": self.name,
            "where": self.where,
            "rows": self.rows,
            "sample": [{key: _text(value) for key, value in row.items()} for row in self.sample],
            "metrics": {metric: _text(value) for metric, value in self.metrics.items()},
        }


class CheckedRows(MeasuredRows, Protocol):
    """The rows of one version of a branch."""

    def sample(self, where: Predicate | str, count: int) -> Sample:
        """Return some rows that match a filter."""
        ...

    def query(self, text: str, count: int) -> tuple[int, Sample]:
        """Run a query, in which the name of the table is the branch; count its rows, and return some."""
        ...


def find_checks(metadata: TableMetadata, given: Mapping[str, str] | None) -> dict[str, str]:
    """Return the checks of a table and those of the caller, by name."""
    kept = {
        key.removeprefix(CHECK_PREFIX): where
        for key, where in metadata.properties.items()
        if key.startswith(CHECK_PREFIX)
    }
    if both := sorted(kept.keys() & (given or {}).keys()):
        raise InvalidInput(f"the table has a check {both[0]!r} already", hint="Give it another name")
    return {**kept, **(given or {})}


def check_new_checks(properties: Mapping[str, str], schema: Schema) -> None:
    """Raise an error for a check among new properties that could never be run. Queries are not parsed here."""
    for key, where in properties.items():
        if key.startswith(CHECK_PREFIX) and not _is_query(where):
            name = key.removeprefix(CHECK_PREFIX)
            if not name:
                raise InvalidInput(f"{CHECK_PREFIX} is not followed by the name of a check")
            with _naming(name):
                _parse(where, schema)


def run_checks(branch: str, checks: Mapping[str, str], rows: CheckedRows) -> None:
    """Run all checks. Raises CheckFailed, which says which rows break which."""
    failures = []
    for name, where in checks.items():
        with _naming(name):
            failure = _run(name, where, rows)
        failures += [failure] if failure is not None else []
    if failures:
        shown = "; ".join(map(str, failures))
        raise CheckFailed(
            f"cannot publish {branch!r}: it breaks {len(failures)} of {len(checks)} check(s): {shown}",
            hint="Nothing was published; correct the rows on the branch, and publish it again",
            failures=failures,
        )


def _run(name: str, where: str, rows: CheckedRows) -> CheckFailure | None:
    if _is_query(where):
        count, sample = rows.query(where, SHOWN_ROWS)
        return CheckFailure(name, where, count, sample) if count else None
    condition = _parse(where, rows.schema)
    if condition is None:
        count = rows.count(where)
        return CheckFailure(name, where, count, rows.sample(where, SHOWN_ROWS)) if count else None
    measured = condition.measure(rows)
    if condition.holds(rows.schema, measured):
        return None
    filters = (sample_filter(metric, measured[metric.text]) for metric in condition.metrics)
    about = next((each for each in filters if each is not None), None)
    sample = [] if about is None else rows.sample(about, SHOWN_ROWS)
    count = 0 if about is None else rows.count(about)
    return CheckFailure(name, where, count, sample, {metric: value.as_py() for metric, value in measured.items()})


def _parse(where: str, schema: Schema) -> MetricCondition | None:
    """Return the condition over metrics, checked; None for a filter, which is checked too."""
    condition = parse_metrics(where)
    if condition is None:
        bind(where, schema)
    else:
        condition.check(schema)
    return condition


@contextmanager
def _naming(check: str) -> Iterator[None]:
    """Have errors of a check say which one it is."""
    try:
        yield
    except (InvalidInput, NotFound, Unsupported) as error:
        error.message = f"the check {check!r} cannot be run: {error.message}"
        raise


def _text(value: object) -> object:
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


def _is_query(text: str) -> bool:
    return any(token.word in _QUERIES for token in islice(lex(text), 1))
