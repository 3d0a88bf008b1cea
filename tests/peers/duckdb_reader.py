"""DuckDB in a child process: one child for many reads, because it starts slowly, and a child because it may abort.

Run as a script it answers queries: a length and SQL text in, a length and an Arrow stream or an error text out.
"""

import os
import struct
import subprocess
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import IO, Self

import duckdb
import pyarrow as pa

LENGTH = struct.Struct("<q")  # of an answer; negative for an error text


class DuckDBError(Exception):
    """DuckDB refused a query, or died of it."""


class DuckDBReader:
    """Asks DuckDB; a child that died is replaced for the next query."""

    def __init__(self) -> None:
        self._child: subprocess.Popen[bytes] | None = None

    def query(self, sql: str) -> pa.Table:
        """Run a query."""
        child = self._child = self._child or _start()
        assert child.stdin
        assert child.stdout
        _send(child.stdin, sql.encode())
        try:
            return pa.ipc.open_stream(_receive(child.stdout)).read_all()
        except EOFError as error:
            code = self.close()
            raise DuckDBError(f"DuckDB died with exit code {code} of: {sql}") from error

    def read(
        self,
        metadata_location: str,
        where: str | None = None,
        snapshot_id: int | None = None,
        more: Sequence[str] = (),
    ) -> pa.Table:
        """Read a table from its metadata file. more: columns that are not in its schema."""
        at = f", snapshot_from_id={snapshot_id}" if snapshot_id is not None else ""
        condition = f"WHERE {where}" if where else ""
        columns = ", ".join(("*", *more))
        return self.query(f"SELECT {columns} FROM iceberg_scan({_text(metadata_location)}{at}) {condition}")

    def keys_matching(self, metadata_location: str, key: str, conditions: Sequence[str]) -> list[list[int]]:
        """Return the keys that match each condition; each is a scan of its own, all in one query."""
        if not conditions:
            return []
        scans = [
            f"SELECT {at} AS condition, {key} AS key FROM iceberg_scan({_text(metadata_location)}) WHERE {condition}"
            for at, condition in enumerate(conditions)
        ]
        found: list[list[int]] = [[] for _ in conditions]
        for row in self.query(" UNION ALL ".join(scans)).to_pylist():
            found[row["condition"]].append(row["key"])
        return found

    def close(self) -> int | None:
        """End the child and return its exit code."""
        child, self._child = self._child, None
        if child is None:
            return None
        assert child.stdin
        assert child.stdout
        child.stdin.close()
        child.stdout.close()
        return child.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()


def _text(location: str) -> str:
    return "'" + location.removeprefix("file://").replace("'", "''") + "'"


def _start() -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def _send(sink: IO[bytes], data: bytes, sign: int = 1) -> None:
    sink.write(LENGTH.pack(sign * len(data)) + data)
    sink.flush()


def _receive(source: IO[bytes]) -> bytes:
    head = source.read(LENGTH.size)
    if len(head) < LENGTH.size:
        raise EOFError
    length = LENGTH.unpack(head)[0]
    data = source.read(abs(length))
    if length < 0:
        raise DuckDBError(data.decode())
    return data


def _connect() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    # Nothing is fetched: the extensions come from wheels, and avro first, for iceberg would look for it on the net.
    connection.execute("SET autoinstall_known_extensions=false; SET autoload_known_extensions=false")
    connection.execute("SET TimeZone='UTC'")
    for name in ("avro", "iceberg"):
        spec = find_spec(f"duckdb_extension_{name}")
        assert spec
        assert spec.origin
        file = Path(spec.origin).parent / "extensions" / f"v{duckdb.__version__}" / f"{name}.duckdb_extension"
        connection.execute(f"LOAD {_text(str(file))}")
    return connection


def _answer_all(source: IO[bytes], sink: IO[bytes]) -> None:
    connection = _connect()
    while True:
        try:
            sql = _receive(source).decode()
        except EOFError:
            return
        try:
            table = connection.execute(sql).to_arrow_table()
        except duckdb.Error as error:
            _send(sink, f"{type(error).__name__}: {error}".encode() or b"?", sign=-1)
            continue
        buffer = pa.BufferOutputStream()
        with pa.ipc.new_stream(buffer, table.schema) as writer:
            writer.write_table(table)
        _send(sink, buffer.getvalue().to_pybytes())


if __name__ == "__main__":
    _answer_all(sys.stdin.buffer, sys.stdout.buffer)
    sys.stdout.flush()
    os._exit(0)  # unloading the extensions has nothing to add
