"""One connection to a PostgreSQL server: explicit transactions, values always as parameters."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict
from psycopg.pq import TransactionStatus

from icefield.catalog.sql.database import Rows, Value
from icefield.errors import InvalidInput
from icefield.secrets import secrets_of_environment

# Timeouts for a server that disappears without closing the connection, while connecting or waiting for a response.
_DEFAULTS: Mapping[str, str | int] = {
    "connect_timeout": 10,
    "keepalives_idle": 20,
    "keepalives_interval": 10,
    "keepalives_count": 4,
    "tcp_user_timeout": 60_000,
    "application_name": "icefield",
}


@dataclass(frozen=True)
class PostgresTarget:
    """Where to connect, and a label for messages, without the password."""

    parameters: Mapping[str, str | int] = field(repr=False)
    label: str

    def secrets(self) -> list[str]:
        """Return what no message may show."""
        own = [str(self.parameters[key]) for key in ("password", "sslpassword") if key in self.parameters]
        return [*own, *secrets_of_environment(os.environ)]


def parse_target(url: str) -> PostgresTarget:
    """Parse a libpq URL: `postgresql://user:password@host:port/database?option=value`."""
    shape = "Give postgresql://user:password@host:port/database, with special characters percent-encoded"
    if not url.startswith(("postgresql://", "postgres://")):
        raise InvalidInput(f"{url.partition('://')[0]!r} is not the scheme of a PostgreSQL URL", hint=shape)
    given = _read_url(url)
    if given is None:
        raise InvalidInput("the PostgreSQL URL is malformed", hint=shape)
    parameters = {**_DEFAULTS, **{key: value for key, value in given.items() if value is not None}}
    user = f"{given['user']}@" if given.get("user") else ""
    port = f":{given['port']}" if given.get("port") else ""
    return PostgresTarget(parameters, f"postgresql://{user}{given.get('host') or ''}{port}/{given.get('dbname') or ''}")


def _read_url(url: str) -> Mapping[str, Any] | None:
    """Parse a URL; None if it is invalid, without libpq's error, which may quote a password."""
    rest = url.partition("://")[2]
    owner, at, _ = rest.partition("@")
    # If an @ or a / of a password is not percent-encoded, part of the password is taken for the host or the database.
    if rest.count("@") > 1 or (at and "/" in owner):
        return None
    try:
        given = conninfo_to_dict(url)
    except psycopg.Error:
        return None
    ports = str(given.get("port") or "0").split(",")
    return given if all(port.isdigit() or not port for port in ports) else None


def open_connection(target: PostgresTarget) -> "PostgresConnection":
    """Connect; raises the driver's errors."""
    # A prepared `SELECT *` would always fail once another client has added a column.
    parameters = {**target.parameters, "client_encoding": "utf8"}
    return PostgresConnection(psycopg.connect(autocommit=True, prepare_threshold=None, **parameters))  # type: ignore[arg-type]


class PostgresConnection:
    """A session with one transaction at a time."""

    def __init__(self, connection: psycopg.Connection) -> None:
        self._connection = connection

    @property
    def in_transaction(self) -> bool:
        return self._connection.info.transaction_status is not TransactionStatus.IDLE

    @cached_property
    def is_pooled(self) -> bool:
        """Whether a pooler shares the server's connections.

        A pooler gives each client an invented process id, because no single server process serves it.
        """
        (row,) = self.execute("SELECT pg_backend_pid()").values
        return row[0] != self._connection.info.backend_pid

    def execute(self, statement: str, values: Sequence[Value] = ()) -> Rows:
        cursor = self._connection.execute(statement.replace("?", "%s").encode(), values)
        columns = tuple(column.name for column in cursor.description or ())
        return Rows(columns, cursor.fetchall() if columns else [], cursor.rowcount)

    def command(self, statements: str) -> str:
        """Run statements without values in one message, and return the command tag of the last."""
        cursor = self._connection.execute(statements.encode())
        while cursor.nextset():
            pass
        return cursor.statusmessage or ""

    def rollback(self) -> None:
        """Roll back; if that fails, the connection is closed, and the server rolls back."""
        if self._connection.closed or not self.in_transaction:
            return
        try:
            self.command("ROLLBACK")
        except psycopg.Error:
            self._connection.close()

    def close(self) -> None:
        self._connection.close()
