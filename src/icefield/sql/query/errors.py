"""Errors of Spark about a query, as errors that point at the author's text."""

import re
from collections.abc import Mapping, Sequence

from icefield.engine.queries.sql import RefusedBySpark
from icefield.errors import IcefieldError, InvalidInput, NoSuchTable
from icefield.expr.query.lexer import lex
from icefield.sql.session import Run
from icefield.sql.syntax.cursor import Cursor, Name
from icefield.sql.syntax.place import Place
from icefield.sql.text.rewrite import Rewritten

_NO_RELATION = ("TABLE_OR_VIEW_NOT_FOUND", "REQUIRES_SINGLE_PART_NAMESPACE", "SCHEMA_NOT_FOUND")
_GENERATED = re.compile(r"`?(icefield_[0-9a-f]{32}_\d+_x*|_pyspark_connect_temp_view_[0-9a-f]{32})`?(\.?)")
_NO_VALUE = "UNBOUND_SQL_PARAMETER"
# Names and expressions in a message.
_QUOTED = re.compile(r"`([^`]+)`|\"([^\"]+)\"")
_SUGGESTIONS = re.compile(r"\.? Did you mean one of the following\? \[(.*)\]")


def error_of(run: Run, refused: RefusedBySpark, rewritten: Rewritten, left: Sequence[Name] = ()) -> IcefieldError:
    """Return what Spark says about a text, at the place that it comes from. left: names that are Spark's to resolve."""
    place = _place_of(refused, rewritten)
    if refused.condition.startswith(_NO_RELATION):
        named = [name for name in left if ".".join(f"`{part}`" for part in name.parts) in refused.message]
        at = [name for name in left if place is not None and name.place.start == place.start]
        if at or named:
            return run.missing((at or named)[0])
    if refused.condition == _NO_VALUE and place is not None:
        return _no_value(run, place)
    message, hint = without_generated(refused.message), None
    if found := _SUGGESTIONS.search(message):
        message, hint = message[: found.start()], f"Did you mean {found[1]}?"
    said = f"[{refused.condition}] {message}" if refused.condition else message
    kind = NoSuchTable if refused.condition.startswith(_NO_RELATION) else InvalidInput
    if place is None or place.text.strip() == rewritten.origin.text.strip():
        place = token_called([name for pair in _QUOTED.findall(message) for name in pair if name], rewritten.origin)
    return place.error(said, hint=hint, kind=kind)


def token_called(names: Sequence[str], place: Place) -> Place:
    """Return the place of the first token that has the first of these names that there is, else the whole."""
    tokens = [token for token in lex(place.source[: place.end]) if token.start >= place.start]
    for wanted in (name.lower() for name in names):
        for token in tokens:
            if (token.name if token.is_name else token.text).lower() == wanted:
                return Place(place.source, token.start, token.end)
    return place


def without_generated(text: str, known: Mapping[str, str] | None = None) -> str:
    """Return a text of Spark without the names that stand for DataFrames, or with those that they stand for."""
    names = known or {}
    return _GENERATED.sub(lambda found: names[found[1]] + found[2] if found[1] in names else "", text)


def _no_value(run: Run, place: Place) -> IcefieldError:
    parameters = run.parameters
    known = ", ".join(f":{name}" for name in parameters.named) or f"{len(parameters.positional)} for ?"
    return place.error(f"the parameter {place.text} has no value (given: {known})", kind=InvalidInput)


def _place_of(refused: RefusedBySpark, rewritten: Rewritten) -> Place | None:
    if refused.start is None or refused.stop is None:
        return None
    place = rewritten.place(refused.start, refused.stop)
    if place.end > place.start:
        return place
    # A position without a length is that of a token.
    return Cursor(place.source, place.start, rewritten.origin.end).place
