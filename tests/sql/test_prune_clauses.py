"""Filters for planning never leave out a row for which Spark finds the condition true."""

from collections.abc import Iterator
from random import Random

import pytest
from pyspark.sql import SparkSession

from icefield.config.connect import connect
from icefield.expr.bind.bound import TRUE
from icefield.expr.render.describe import describe
from icefield.lake import Lake
from icefield.spark.sql.probe import PRUNING
from icefield.sql.query.read import Opening
from icefield.sql.session import Run, SqlSession
from icefield.sql.syntax.place import Place
from tests.effort import seeds
from tests.spark_places import changed
from tests.sql.where_clauses import ZONES, clauses, create_table

pytestmark = pytest.mark.spark

CLAUSES_OF_A_SEED = 24
ZONE, ANSI = "spark.sql.session.timeZone", "spark.sql.ansi.enabled"


@pytest.fixture(scope="module")
def clause_lake(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Iterator[Lake]:
    with connect(tmp_path_factory.mktemp("clauses")) as lake:
        create_table(lake)
        lake.use(spark)
        yield lake


@pytest.mark.parametrize("seed", seeds(6, 200))
def test_a_filter_holds_for_every_row_of_the_result(clause_lake: Lake, spark: SparkSession, seed: int) -> None:
    random = Random(seed)
    with changed(spark, {ZONE: random.choice(ZONES), ANSI: random.choice(("true", "false"))}):
        _check(clause_lake, spark, list(clauses(random, CLAUSES_OF_A_SEED)))


def _check(lake: Lake, spark: SparkSession, wheres: list[str]) -> None:
    with changed(spark, {PRUNING: "false"}):
        wanted = _matching_ids(lake, wheres)
    pruned = 0
    for where, ids in zip(wheres, wanted, strict=True):
        if ids is None:
            continue
        query = f"SELECT id FROM w.t WHERE {where}"
        place = Place(query, 0, len(query))
        opening = Opening(Run(SqlSession(lake)))
        names = opening.names(place)
        opening.prune(names)
        table = names.references[0]
        found = set(table.scan(table.where, ["id"]).to_arrow().read_all()["id"].to_pylist())
        zone = spark.conf.get(ZONE)
        assert ids <= found, (zone, where, describe(table.where or TRUE), sorted(ids - found))
        pruned += table.where is not None
    assert pruned > len(wheres) // 4


def _matching_ids(lake: Lake, wheres: list[str]) -> list[set[int] | None]:
    """Return for each condition the rows for which it is true; None if Spark refuses it."""
    tests = ", ".join(f"coalesce({where}, FALSE)" for where in wheres)
    try:
        rows = lake.sql(f"SELECT id, array({tests}) AS found FROM w.t").collect()
    except Exception:
        if len(wheres) == 1:
            return [None]
        return [each for where in wheres for each in _matching_ids(lake, [where])]
    return [{row["id"] for row in rows if row["found"][at]} for at in range(len(wheres))]
