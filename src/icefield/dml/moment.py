"""The time that the expressions of a change see: one moment, the same for all rows, files and clauses.

The date is that of the Spark session's time zone, or UTC without a session, which is the zone of sessions that Icefield
starts. So it does not depend on the engine.
"""

from datetime import UTC, datetime, tzinfo
from zoneinfo import ZoneInfo

from icefield.ambient import Ambient
from icefield.engine.rows import SessionChoice, has_session, load_spark_engine
from icefield.expr.values.scope import Moment
from icefield.types.calendar import EPOCH


def find_moment(ambient: Ambient, sessions: SessionChoice) -> Moment:
    """Return the time at which a change begins."""
    now_ms = ambient.now_ms()
    return Moment(now_ms * 1000, _days(now_ms, sessions))


def _days(now_ms: int, sessions: SessionChoice) -> int | None:
    try:
        zone = _zone(sessions)
    except (ValueError, OSError, LookupError):
        return None  # a spelling that only Spark knows, such as +01:00
    today = datetime.fromtimestamp(now_ms / 1000, UTC).astimezone(zone).date()
    return (today - EPOCH.date()).days


def _zone(sessions: SessionChoice) -> tzinfo:
    if not has_session(sessions.session):
        return UTC
    return ZoneInfo(load_spark_engine().time_zone(sessions.session))
