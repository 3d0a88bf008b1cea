"""Spark for what only Spark can evaluate: a session is started when a statement needs one, and not before."""

from collections.abc import Callable, Mapping
from typing import TypeVar

from icefield.engine.local import LOCAL
from icefield.engine.rows import has_session
from icefield.errors import NeedsSpark
from icefield.sql.rows.expressions import pointing_into
from icefield.sql.session import Run
from icefield.sql.syntax.place import Place

T = TypeVar("T")


def starting_spark(run: Run, change: Callable[[], T], *places: Place, values: Mapping[str, Place] | None = None) -> T:
    """Run a change; if only Spark can evaluate it, start a session and run it again.

    places: of its expressions, for errors. values: those that are assigned, by column in lower case.
    """
    sessions = run.lake.source.sessions
    with pointing_into(*places, values=values):
        try:
            return change()
        except NeedsSpark:
            if LOCAL in (run.engine, sessions.engine) or has_session(sessions.session):
                raise
        run.lake.spark  # noqa: B018 - starts it
        return change()
