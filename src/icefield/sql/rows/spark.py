"""Spark for what only Spark can evaluate: a session is started when a statement needs one, and not before."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import TypeVar

from icefield.engine.choose import LOCAL
from icefield.engine.rows import has_session
from icefield.errors import InvalidInput, NeedsSpark
from icefield.sql.rows.expressions import pointing_into, tokens_of
from icefield.sql.session import Run
from icefield.sql.syntax.place import Place

T = TypeVar("T")

# What Spark says about functions whose value does not depend on the row alone.
_REFUSED = ("[UNSUPPORTED_EXPR_FOR_OPERATOR]", "[INVALID_NON_DETERMINISTIC_EXPRESSIONS]")
_AGGREGATES = frozenset(
    (
        *("any", "any_value", "approx_count_distinct", "array_agg", "avg", "bit_and", "bit_or", "bit_xor", "bool_and"),
        *("bool_or", "collect_list", "collect_set", "corr", "count", "count_if", "every", "first", "first_value"),
        *("kurtosis", "last", "last_value", "listagg", "max", "max_by", "mean", "median", "min", "min_by", "mode"),
        *("percentile", "percentile_approx", "skewness", "some", "std", "stddev", "string_agg", "sum", "try_avg"),
        *("try_sum", "var_pop", "var_samp", "variance"),
    )
)
_RANDOM = frozenset(
    (
        *("input_file_name", "monotonically_increasing_id", "rand", "randn", "random", "randstr", "shuffle"),
        *("spark_partition_id", "uniform", "uuid"),
    )
)


def starting_spark(
    run: Run,
    change: Callable[[], T],
    *places: Place,
    values: Mapping[str, Place] | None = None,
    written: Mapping[str, Place] | None = None,
) -> T:
    """Run a change; if only Spark can evaluate it, start a session and run it again.

    places: of its expressions, for errors. values: those that are assigned, by column in lower case. written: the
    expressions by their text for the engine.
    """
    sessions = run.lake.source.sessions
    with pointing_into(*places, values=values, written=written), refusing_functions(places):
        try:
            return change()
        except NeedsSpark:
            if LOCAL in (run.engine, sessions.engine) or has_session(sessions.session):
                raise
        run.lake.spark  # noqa: B018 - starts it
        return change()


@contextmanager
def refusing_functions(places: Sequence[Place]) -> Iterator[None]:
    """Let errors about aggregates, window functions and random values point at the function."""
    try:
        yield
    except InvalidInput as error:
        if not any(each in error.message for each in _REFUSED):
            raise
        message = "aggregates, window functions and random values do not depend on the row alone"
        place = next(filter(None, map(_find_refused, places)), places[0])
        raise place.error(message, hint="Compute them in a subquery or in the source", kind=InvalidInput) from error


def _find_refused(place: Place) -> Place | None:
    for token, after in pairwise(tokens_of(place)):
        is_call = after.text == "(" and token.word in _AGGREGATES | _RANDOM
        if is_call or (token.word == "over" and after.text == "("):
            return Place(place.source, token.start, token.end)
    return None
