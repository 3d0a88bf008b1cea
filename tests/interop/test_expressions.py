"""What Iceberg Java allows in the expressions of row-level changes, which is the measure for ours. (decision 55)"""

import pytest
from tests.interop.iceberg_java import IcebergJava, IcebergJavaError

pytestmark = pytest.mark.interop
SUBQUERY = "{0} IN (SELECT id FROM java.said.other)"
CONDITIONS = [
    f"ON t.id = s.id AND {SUBQUERY.format('s.id')} WHEN MATCHED THEN DELETE",
    f"ON t.id = s.id WHEN MATCHED AND {SUBQUERY.format('t.id')} THEN DELETE",
    f"ON t.id = s.id WHEN NOT MATCHED AND {SUBQUERY.format('s.id')} THEN INSERT *",
    f"ON t.id = s.id WHEN NOT MATCHED BY SOURCE AND {SUBQUERY.format('t.id')} THEN DELETE",
]


@pytest.fixture(scope="module")
def tables(java: IcebergJava) -> IcebergJava:
    java.sql("CREATE NAMESPACE IF NOT EXISTS java.said")
    for name in ("t", "other"):
        java.sql(f"CREATE OR REPLACE TABLE java.said.{name} (id BIGINT, n BIGINT) USING iceberg")
        java.sql(f"INSERT INTO java.said.{name} VALUES (1, 1), (2, 2), (3, 3)")
    return java


@pytest.mark.parametrize("statement", CONDITIONS)
def test_conditions_of_a_merge_cannot_have_subqueries(tables: IcebergJava, statement: str) -> None:
    with pytest.raises(IcebergJavaError, match="(?i)subquer"):
        tables.sql(f"MERGE INTO java.said.t t USING java.said.other s {statement}")
