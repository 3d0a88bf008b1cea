"""The session that rows go through: the user's own, left as it is."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from pyspark.sql import SparkSession

from icefield.lake import Lake
from icefield.spark.session import READ_BY_FIELD_ID, session

pytestmark = pytest.mark.spark


def test_a_session_made_in_another_thread_is_used_and_left_as_it_is(spark: SparkSession) -> None:
    zone = str(spark.conf.get("spark.sql.session.timeZone"))
    try:
        spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
        with ThreadPoolExecutor(1) as pool:
            found = pool.submit(session).result()
        assert found.conf.get("spark.sql.session.timeZone") == "Asia/Tokyo"
        assert found.sparkContext is spark.sparkContext
    finally:
        spark.conf.set("spark.sql.session.timeZone", zone)


def test_files_are_read_by_field_id_in_a_session_of_the_user(lake: Lake, spark: SparkSession) -> None:
    spark.conf.set(READ_BY_FIELD_ID, "false")
    assert lake.spark.conf.get(READ_BY_FIELD_ID) == "true"
