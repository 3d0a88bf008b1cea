"""Errors of expressions point at the expression that fails, also where a statement has several; without a JVM."""

import pytest

from icefield.errors import IcefieldError
from icefield.lake import Lake
from tests.sql.changing import change, refuse, rows

MERGE = "MERGE INTO shop.t USING shop.s AS s ON t.id = s.id"
# The part of each statement that is wrong is in «».
FAILING = [
    "UPDATE shop.t SET id = 1, n = «99999999999»",
    "UPDATE shop.t SET id = id, n = «1 / (n - n)» WHERE id = 1",
    "UPDATE shop.t SET id = n + 1, name = «concat(name, n)» WHERE id <= 2",
    "UPDATE shop.t SET id = n, name = 'x' WHERE «1 / (n - n) = 1»",
    "UPDATE shop.t SET n = n + 1, id = «2147483647 + n»",
    "UPDATE shop.t SET n = 1, size.w = «-3000000000»",
    "DELETE FROM shop.t WHERE «n / (id - id) = 1»",
    f"{MERGE} WHEN MATCHED THEN UPDATE SET n = «99999999999»",
    f"{MERGE} WHEN MATCHED AND t.id = 1 THEN DELETE WHEN MATCHED THEN UPDATE SET name = 'y', n = «s.n * 2147483647»",
    f"{MERGE} WHEN MATCHED AND «t.n / (t.n - t.n) > 0» THEN DELETE",
    f"{MERGE} WHEN NOT MATCHED THEN INSERT (id, n) VALUES (s.id, «s.n / (s.n - s.n)»)",
    f"{MERGE} WHEN NOT MATCHED BY SOURCE THEN UPDATE SET n = «t.n / (t.n - t.n)»",
    f"{MERGE} WHEN MATCHED AND s.name = 'b' THEN DELETE WHEN MATCHED THEN UPDATE SET name = «named_struct('a', 5)»",
    "MERGE INTO shop.t USING shop.twice AS s ON «t.id» = s.id WHEN MATCHED THEN UPDATE SET n = s.id",
    "MERGE INTO shop.t USING shop.twice s ON «t.id» = s.id WHEN MATCHED AND s.id > 0 THEN UPDATE SET id = s.id",
]


@pytest.fixture
def shop(lake: Lake) -> Lake:
    lake.create_table("shop.t", "id int, n int, name string, size struct<w: int>")
    lake.create_table("shop.s", "id int, n int, name string")
    lake.create_table("shop.twice", "id int")
    change(lake, "INSERT INTO shop.t (id, n, name) VALUES (1, 1, 'a'), (2, 2, 'b'), (3, 3, 'c')")
    change(lake, "INSERT INTO shop.s VALUES (1, 10, 'a'), (2, 20, 'b'), (9, 90, 'z')")
    change(lake, "INSERT INTO shop.twice VALUES (1), (1)")
    return lake


@pytest.mark.parametrize("marked", FAILING)
def test_an_error_points_at_the_expression_that_fails(shop: Lake, marked: str) -> None:
    before = rows(shop.table("shop.t"))
    text = marked.replace("«", "").replace("»", "")
    with pytest.raises(IcefieldError) as caught:
        change(shop, text)
    excerpt = str(caught.value.excerpt).splitlines()
    # The caret is below the first character of the part; the part may be longer than what is known to be wrong.
    assert caught.value.position == (1, marked.index("«")), caught.value
    assert excerpt[0][excerpt[1].index("^") :].startswith(marked[marked.index("«") + 1])
    assert rows(shop.table("shop.t")) == before


@pytest.mark.spark
def test_an_error_of_a_subquery_points_at_it(shop: Lake, spark: object) -> None:
    shop.use(spark)
    text = "UPDATE shop.t SET n = 1 WHERE id = (SELECT id FROM shop.twice)"
    refuse(shop, text, IcefieldError, at="(SELECT", engine=None)
