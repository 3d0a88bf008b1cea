"""Sessions in this process, one after the other and side by side, in a process of their own: see test_sessions.py."""

import sys
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession
from tests.spark.connect_sessions import refused

import icefield
from icefield.spark.session.session import HAND_IN

NEW_YORK = ("spark.sql.session.timeZone", "America/New_York")


def main(directory: Path) -> None:
    with icefield.connect(directory / "lake", durable=False) as lake:
        table = lake.create_table("a.t", "id long, at timestamptz")
        table.append(pa.table({"id": [1, 2, 3]}))
        first = lake.spark
        second = first.newSession()
        second.conf.set(*NEW_YORK)
        frame = table.scan().to_spark(session=second)
        assert frame.sparkSession.conf.get(NEW_YORK[0]) == NEW_YORK[1]
        lake.use(second)
        assert table.scan().to_spark().sparkSession.conf.get(NEW_YORK[0]) == NEW_YORK[1]
        assert lake.spark.conf.get(NEW_YORK[0]) == NEW_YORK[1]
        table.append(first.sql("SELECT 4L AS id, CAST(NULL AS timestamp) AS at"))
        table.overwrite(first.sql("SELECT 1L AS id, CAST(NULL AS timestamp) AS at"), where="id = 1")
        assert sorted(row.id for row in table.scan().to_spark().collect()) == [1, 2, 3, 4]
        application = first.sparkContext.applicationId
        first.stop()
        assert refused(lambda: table.scan().to_spark()) == HAND_IN
        # Another context, in the same process.
        third = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
        assert third.sparkContext.applicationId != application
        lake.use(None)
        assert table.scan().to_spark().count() == 4
        table.append(third.sql("SELECT 6L AS id, CAST(NULL AS timestamp) AS at"))
        assert lake.use(third).read("a.t").count() == 5
        third.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
