"""Translate PostgreSQL's errors. The codes are SQLSTATEs (PostgreSQL manual, appendix A)."""

import psycopg

from icefield.errors import CatalogError

# The driver raises this for text that cannot be encoded as UTF-8.
POSTGRES_ERRORS = (psycopg.Error, UnicodeEncodeError)

_CONTENDED = frozenset({"40001", "40P01"})  # serialization_failure, deadlock_detected
_CREATED_MEANWHILE = frozenset({"23505", "42P07", "42710"})  # unique_violation (of its own catalog), duplicate_*
_SERVER_ENDED = frozenset({"57P01", "57P02", "57P03", "57P05", "25P03", "25P04"})  # shutdowns and time-outs
_LOCKED = "55P03"
# Classes: data exception, integrity constraint, transaction state (read-only), rollback (serialization, deadlock),
# syntax or access rule, insufficient resources (disk full), limits exceeded, object state, errors raised in functions.
_OF_EXECUTION = frozenset({"22", "23", "25", "40", "42", "53", "54", "55", "P0"})
_COMPLETION_UNKNOWN = "40003"
_REASONS = {
    "28P01": ("the password is wrong", "Check the user and the password in the URL"),
    "28000": ("the server does not let this user in", "Check the user in the URL and the server's pg_hba.conf"),
    "3D000": ("there is no such database", "Create it first, or check its name in the URL"),
    "42501": ("the user lacks the required permission", "Grant it on the tables, or on the schema to create them"),
    "25006": ("it is read-only", "Connect to the primary server"),
    "42P01": ("its tables are gone", "Open the catalog again, which makes them"),
    "22001": ("a value is too long", "Its columns hold 255 characters of a name, and 1,000 of a location or property"),
    "53100": ("its disk is full", "Nothing was changed; free some space and run it again"),
    "53300": ("it has no connection left", "Raise max_connections, or put a pooler before it"),
}


def is_contended(error: Exception) -> bool:
    """Return whether a concurrent transaction won, so that this one changed nothing and may be run again."""
    return _code(error) in _CONTENDED


def is_rolled_back(error: psycopg.Error) -> bool:
    """Return whether a COMMIT that failed certainly did not happen.

    A server that responds with an ERROR has rolled back; FATAL and PANIC end the connection, before or after the
    commit. Poolers have been seen to send ERROR for the latter, so only codes that come from executing a transaction
    count.
    """
    is_error = error.diag.severity_nonlocalized == "ERROR"
    return is_error and _code(error)[:2] in _OF_EXECUTION and _code(error) != _COMPLETION_UNKNOWN


def is_created_meanwhile(error: Exception) -> bool:
    """Return whether another process created the table concurrently."""
    return _code(error) in _CREATED_MEANWHILE


def is_lost(error: Exception) -> bool:
    """Return whether the connection was lost."""
    code = _code(error)
    return isinstance(error, psycopg.OperationalError) and (not code or code in _SERVER_ENDED or code.startswith("08"))


def explain(error: Exception, label: str, waited_s: float) -> CatalogError:
    """Return the error to show for one of the driver's, which changed nothing."""
    if is_contended(error) or _code(error) == _LOCKED:
        hint = "Look for a client that holds a transaction open, or give a longer busy_timeout_s"
        return CatalogError(f"the catalog {label} was locked by other connections for {waited_s:g} s", hint=hint)
    if is_lost(error):
        hint = "Nothing was changed; run it again when the server is up"
        return CatalogError(f"the connection to the catalog {label} was lost: {text_of_error(error)}", hint=hint)
    if reason := _REASONS.get(_code(error)):
        return CatalogError(
            f"the catalog {label} rejected the request: {reason[0]} ({text_of_error(error)})", hint=reason[1]
        )
    return CatalogError(f"the catalog {label} failed: {text_of_error(error)}")


def explain_unopened(error: Exception, label: str) -> CatalogError:
    """Return the error to show for a connection that could not be made."""
    text = text_of_error(error)
    # libpq has no codes for errors before the session is established. Messages in another language are quoted
    # unchanged.
    for sign, code in (
        ("password authentication failed", "28P01"),
        ("no password supplied", "28P01"),
        ("no pg_hba.conf entry", "28000"),
        ("too many clients", "53300"),
        ("remaining connection slots", "53300"),
    ):
        if sign in text:
            return _unopened(label, *_REASONS[code])
    if "database" in text and "does not exist" in text:
        return _unopened(label, *_REASONS["3D000"])
    return _unopened(label, text, "Check the host and the port in the URL, and that the server is up")


def text_of_error(error: Exception) -> str:
    """Return the driver's message in one line."""
    return " ".join(str(error).split())


def _unopened(label: str, why: str, hint: str) -> CatalogError:
    return CatalogError(f"cannot connect to the catalog {label}: {why}", hint=hint)


def _code(error: Exception) -> str:
    return getattr(error, "sqlstate", None) or ""
