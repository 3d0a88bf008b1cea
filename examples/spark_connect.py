"""Write and read a table through a Spark Connect server.

Needs icefield[connect], and a server whose Python workers have icefield in the same version. The lake is a directory
that this process and the server see under the same path, or a database and a bucket. Name the server by an argument or
by the environment:

    python spark_connect.py --remote sc://spark.example.com
    SPARK_REMOTE=sc://spark.example.com python spark_connect.py --lake postgresql://… --warehouse s3://bucket/lake

Prints:
    append    1000 rows by spark (the rows are a DataFrame)
    scan      [Row(day=0, count=100), Row(day=1, count=100)]
    upsert    1001 rows by spark (the rows are a DataFrame)
    delete    901 rows by spark (the caller chose it)
"""

import argparse

from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - what everybody calls it

import icefield


def main() -> None:
    given = parse_arguments()
    builder = SparkSession.builder.remote(given.remote) if given.remote else SparkSession.builder
    spark = builder.getOrCreate()
    with icefield.connect(given.lake, warehouse=given.warehouse) as lake:
        lake.use(spark)
        events = lake.create_table(
            "example.events", "id long not null, day int, name string", partition_by=["day"], replace=True
        )

        # The rows are written by the server's tasks. They do not pass through this process.
        rows = spark.range(1000).select("id", (F.col("id") % 10).cast("int").alias("day"), F.lit("click").alias("name"))
        appended = events.append(rows)
        print(f"append    {events.count()} rows by {appended.engine if appended else None}")

        # The filter prunes files by their partition. Spark's own reader reads the rest.
        frame = events.scan(F.col("day") < 2).to_spark()
        print(f"scan      {frame.groupBy('day').count().orderBy('day').collect()}")

        changed = events.upsert(
            spark.sql("SELECT 5L id, 5 day, 'view' name UNION ALL SELECT 1000L, 5, 'view'"), on=["id"]
        )
        print(f"upsert    {events.count()} rows by {changed.engine}")

        # A verb without a DataFrame runs on Spark if you say so, or if there is much to read.
        deleted = events.delete("id % 10 = 7", engine="spark")
        print(f"delete    {events.count()} rows by {deleted.engine}")
    spark.stop()


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Write and read a table through a Spark Connect server.")
    parser.add_argument("--remote", help="sc://host:port; by default SPARK_REMOTE")
    parser.add_argument("--lake", default="lake", help="a directory or URL, as icefield.connect takes it")
    parser.add_argument("--warehouse", help="the bucket of the tables, if the catalog is a database")
    return parser.parse_args()


if __name__ == "__main__":
    main()
