"""Sessions of Spark Connect, one after the other and side by side, in a process of their own: see test_sessions.py."""

import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession
from tests.spark_places import running_server

import icefield
from icefield.errors import Unsupported
from icefield.lake import Lake
from icefield.spark.session.session import HAND_IN
from icefield.table.table import Table


def main(directory: Path) -> None:
    with icefield.connect(directory / "lake", durable=False) as lake:
        table = lake.create_table("a.t", "id long")
        table.append(pa.table({"id": [1, 2, 3]}))
        lake.create_view("a.v", "SELECT id FROM t", schema="id long")
        with running_server() as port:
            old = SparkSession.builder.remote(f"sc://127.0.0.1:{port}").getOrCreate()
            assert table.scan().to_spark().count() == 3
        with running_server(port):
            after_the_restart(lake, table, port)
            side_by_side(lake, table, port)
        assert old is not None


def after_the_restart(lake: Lake, table: Table, port: int) -> None:
    """The old session is refused in one line, and a new one does all that it did."""
    assert refused(lambda: table.scan().to_spark()) == HAND_IN
    new = SparkSession.builder.remote(f"sc://127.0.0.1:{port}").create()
    assert table.scan().to_spark(session=new).count() == 3
    lake.use(new)
    assert table.scan().to_spark().count() == 3
    assert lake.view("a.v").to_spark().count() == 3
    assert table.inspect("files").to_spark().count() == 1
    table.append(new.range(4, 6))
    table.overwrite(new.range(1, 2), where="id = 1")
    assert sorted(row.id for row in lake.read("a.t").collect()) == [1, 2, 3, 4, 5]
    # The dead one does not affect what needs no session either.
    lake.use(None)
    assert table.scan().to_spark().count() == 5
    new.stop()


def side_by_side(lake: Lake, table: Table, port: int) -> None:
    """Rows of a frame go through its own session, whatever the lake uses."""
    url = f"sc://127.0.0.1:{port}"
    one, other = (SparkSession.builder.remote(url).create() for _ in range(2))
    lake.use(one)
    table.append(other.range(20, 21))
    table.overwrite(other.range(2, 3), where="id = 2")
    assert table.scan("id >= 20").to_spark().count() == 1
    assert table.scan("id >= 20").to_spark(session=other).union(other.range(1)).count() == 2
    other.stop()
    assert refused(lambda: table.scan().to_spark(session=other)) == HAND_IN
    assert table.scan("id >= 20").to_spark().count() == 1
    one.stop()
    assert refused(lambda: table.scan().to_spark()) == HAND_IN


def refused(read: Callable[[], object]) -> str | None:
    try:
        read()
    except Unsupported as error:
        return error.hint
    return None


if __name__ == "__main__":
    main(Path(sys.argv[1]))
