"""The session that rows go through: the user's own, left as it is."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from pyspark.sql import SparkSession

from icefield.errors import Unsupported
from icefield.lake import Lake
from icefield.spark.session.session import READ_BY_FIELD_ID, check_version, session

pytestmark = pytest.mark.spark


def test_a_session_made_in_another_thread_is_used_and_left_as_it_is(spark: SparkSession) -> None:
    zone = str(spark.conf.get("spark.sql.session.timeZone"))
    try:
        spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
        with ThreadPoolExecutor(1) as pool:
            found = pool.submit(session).result()
        assert found.conf.get("spark.sql.session.timeZone") == "Asia/Tokyo"
        found.range(1).createOrReplaceTempView("of_this_very_session")
        assert spark.catalog.dropTempView("of_this_very_session")
    finally:
        spark.conf.set("spark.sql.session.timeZone", zone)


def test_files_are_read_by_field_id_in_a_session_of_the_user(lake: Lake, spark: SparkSession) -> None:
    spark.conf.set(READ_BY_FIELD_ID, "false")
    assert lake.spark.conf.get(READ_BY_FIELD_ID) == "true"


def test_a_spark_that_is_too_old_is_refused() -> None:
    with pytest.raises(Unsupported, match="Spark 3.5.9 is too old: Spark 4.0 or newer is required"):
        check_version("3.5.9")
    check_version("4.0.0")
    check_version("10.1.0.dev1")
