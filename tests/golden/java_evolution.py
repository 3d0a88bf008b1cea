"""Tables of Iceberg Java: schemas and specs that changed, versions, branches, files that were added as they are."""

from tests.golden.java_maker import PLAIN_LOCATIONS, Recipe, WriteContext


def schema_evolution(t: WriteContext) -> None:
    """Columns renamed, dropped, added again under an old name, moved, widened: int, float and decimal."""
    t.sql(
        "CREATE TABLE {t} (id INT, a STRING, b FLOAT, c STRING, de DECIMAL(6, 2)) USING iceberg "
        "TBLPROPERTIES ('format-version' = '2')",
        "INSERT INTO {t} SELECT /*+ COALESCE(1) */ * FROM VALUES "
        "(1, 'a1', float(1.1), 'c1', 1.25), (2, 'a2', null, 'c2', -2.25)",
        "ALTER TABLE {t} RENAME COLUMN a TO aa",
        "ALTER TABLE {t} DROP COLUMN c",
        "ALTER TABLE {t} ALTER COLUMN id TYPE BIGINT",
        "ALTER TABLE {t} ALTER COLUMN b TYPE DOUBLE",
        "ALTER TABLE {t} ALTER COLUMN de TYPE DECIMAL(24, 2)",
        "ALTER TABLE {t} ADD COLUMN c STRING FIRST",
        "ALTER TABLE {t} ALTER COLUMN de AFTER c",
        "INSERT INTO {t} VALUES ('new c', 123456789012345.25, 3000000000, 'a3', 1e300)",
    )


def swapped_names(t: WriteContext) -> None:
    """Two columns of one type that exchanged their names."""
    t.sql(
        "CREATE TABLE {t} (id BIGINT, a STRING, b STRING) USING iceberg TBLPROPERTIES ('format-version' = '2')",
        "INSERT INTO {t} VALUES (1, 'first', 'second')",
        "ALTER TABLE {t} RENAME COLUMN a TO x",
        "ALTER TABLE {t} RENAME COLUMN b TO a",
        "ALTER TABLE {t} RENAME COLUMN x TO b",
        "INSERT INTO {t} VALUES (2, 'third', 'fourth')",
    )


def nested_evolution(t: WriteContext) -> None:
    """Fields of structs, in a column, a list and a map, that were renamed, added, dropped, widened and moved."""
    t.sql(
        "CREATE TABLE {t} (id BIGINT, st STRUCT<x: INT, y: STRING, z: STRING>, l ARRAY<STRUCT<p: INT>>, "
        "m MAP<STRING, STRUCT<v: FLOAT>>, li ARRAY<INT>) USING iceberg TBLPROPERTIES ('format-version' = '2')",
        "INSERT INTO {t} VALUES (1, named_struct('x', 1, 'y', 'y1', 'z', 'z1'), array(named_struct('p', 1), null), "
        "map('k', named_struct('v', float(0.5))), array(1, null)), (2, null, null, null, null)",
        "ALTER TABLE {t} RENAME COLUMN st.x TO xx",
        "ALTER TABLE {t} ALTER COLUMN st.xx TYPE BIGINT",
        "ALTER TABLE {t} DROP COLUMN st.z",
        "ALTER TABLE {t} ADD COLUMN st.w STRING",
        "ALTER TABLE {t} ALTER COLUMN st.w FIRST",
        "ALTER TABLE {t} ADD COLUMN l.element.q STRING",
        "ALTER TABLE {t} ALTER COLUMN m.value.v TYPE DOUBLE",
        "ALTER TABLE {t} ALTER COLUMN li.element TYPE BIGINT",
        "INSERT INTO {t} VALUES (3, named_struct('w', 'w3', 'xx', 5000000000, 'y', 'y3'), "
        "array(named_struct('p', 3, 'q', 'q3')), map('k', named_struct('v', 1e300)), array(5000000000))",
    )


def partition_evolution(t: WriteContext) -> None:
    """Three specs: days(ts); then bucket(id) as well; then days dropped, identity and truncate added."""
    insert = (
        "INSERT INTO {{t}} SELECT /*+ COALESCE(1) */ id, concat('c', id % 3), "
        "timestamp_seconds(1704103200 + id * 86400) FROM range({}, {})"
    )
    t.sql(
        "CREATE TABLE {t} (id BIGINT, cat STRING, ts TIMESTAMP) USING iceberg PARTITIONED BY (days(ts)) "
        "TBLPROPERTIES ('format-version' = '2')",
        insert.format(0, 2),
        "ALTER TABLE {t} ADD PARTITION FIELD bucket(4, id)",
        insert.format(2, 4),
        "ALTER TABLE {t} DROP PARTITION FIELD days(ts)",
        "ALTER TABLE {t} ADD PARTITION FIELD cat",
        "ALTER TABLE {t} ADD PARTITION FIELD truncate(1, cat) AS ct",
        insert.format(4, 6),
    )


def v1_partition_evolution(t: WriteContext) -> None:
    """Version 1: a dropped field stays in the spec, as void."""
    t.sql(
        "CREATE TABLE {t} (id BIGINT, p STRING) USING iceberg PARTITIONED BY (p, bucket(2, id)) "
        "TBLPROPERTIES ('format-version' = '1')",
        "INSERT INTO {t} SELECT id, concat('p', id % 2) FROM range(0, 3)",
        "ALTER TABLE {t} DROP PARTITION FIELD p",
        "INSERT INTO {t} SELECT id, concat('p', id % 2) FROM range(3, 6)",
    )


def dropped_source(t: WriteContext) -> None:
    """A partition field was dropped, then its source column too; old files still carry its values."""
    t.sql(
        "CREATE TABLE {t} (id BIGINT, p STRING, s STRING) USING iceberg PARTITIONED BY (p) "
        "TBLPROPERTIES ('format-version' = '2')",
        "INSERT INTO {t} SELECT id, concat('p', id % 2), concat('s', id) FROM range(0, 4)",
        "ALTER TABLE {t} DROP PARTITION FIELD p",
        "ALTER TABLE {t} DROP COLUMN p",
        "INSERT INTO {t} SELECT id, concat('s', id) FROM range(4, 6)",
    )


def upgraded(t: WriteContext) -> None:
    """Written in version 1, then in 2, then in 3; rows of old files get their row ids by the commit in 3."""
    t.sql("CREATE TABLE {t} (id BIGINT, s STRING) USING iceberg TBLPROPERTIES ('format-version' = '1')")
    for at in range(3):
        t.sql(
            f"ALTER TABLE {{t}} SET TBLPROPERTIES ('format-version' = '{at + 1}')",
            f"INSERT INTO {{t}} SELECT /*+ COALESCE(1) */ id, concat('s', id) FROM range({at * 3}, {at * 3 + 3})",
        )


def upgraded_unwritten(t: WriteContext) -> None:
    """Upgraded from 2 to 3, but not written since: no row has an id."""
    t.sql(
        "CREATE TABLE {t} (id BIGINT, s STRING) USING iceberg TBLPROPERTIES ('format-version' = '2')",
        "INSERT INTO {t} VALUES (1, 'a')",
        "ALTER TABLE {t} SET TBLPROPERTIES ('format-version' = '3')",
    )


def branch_and_tag(t: WriteContext) -> None:
    """A tag, a branch that went its own way, and a schema that changed between: a branch takes the new one."""
    t.sql(
        "CREATE TABLE {t} (id BIGINT, s STRING) USING iceberg TBLPROPERTIES ('format-version' = '2')",
        "INSERT INTO {t} VALUES (1, 'a')",
        "ALTER TABLE {t} CREATE TAG first RETAIN 1000000 DAYS",
        "ALTER TABLE {t} CREATE BRANCH dev WITH SNAPSHOT RETENTION 5 SNAPSHOTS",
        "INSERT INTO {t}.branch_dev VALUES (10, 'dev')",
        "ALTER TABLE {t} RENAME COLUMN s TO text",
        "ALTER TABLE {t} ADD COLUMN more INT",
        "INSERT INTO {t} VALUES (2, 'b', 2)",
    )


def name_mapping(t: WriteContext) -> None:
    """Parquet files without ids, read by the name mapping; columns were renamed since.

    One was dropped and added again: the mapping gives its name, and so the old values, to the new column.
    """
    rows = t.spark.sql("SELECT id, concat('s', id) AS s, named_struct('x', id) AS st, id * 2 AS gone FROM range(0, 4)")
    rows.coalesce(1).write.parquet(f"{t.folder}/raw")
    t.sql(
        "CREATE TABLE {t} (id BIGINT, s STRING, st STRUCT<x: BIGINT>, gone BIGINT) USING iceberg "
        "TBLPROPERTIES ('format-version' = '2')",
        "CALL {procedure}.add_files(table => '{name}', source_table => '`parquet`.`{folder}/raw`')",
        "ALTER TABLE {t} RENAME COLUMN s TO text",
        "ALTER TABLE {t} RENAME COLUMN st.x TO y",
        "ALTER TABLE {t} DROP COLUMN gone",
        "ALTER TABLE {t} ADD COLUMN gone BIGINT",
        "INSERT INTO {t} VALUES (9, 'own', named_struct('y', 9), 90)",
    )


def hive_partitioned(t: WriteContext) -> None:
    """Parquet files of a Hive directory without ids; the partition column is in their paths only."""
    rows = t.spark.sql("SELECT id, concat('s', id) AS s, cast(id % 2 AS int) AS p FROM range(0, 4)")
    rows.coalesce(1).write.partitionBy("p").parquet(f"{t.folder}/raw")
    t.sql(
        "CREATE TABLE {t} (id BIGINT, s STRING, p INT) USING iceberg PARTITIONED BY (p) "
        "TBLPROPERTIES ('format-version' = '2')",
        "CALL {procedure}.add_files(table => '{name}', source_table => '`parquet`.`{folder}/raw`')",
        "INSERT INTO {t} VALUES (9, 'own', 1)",
    )


RECIPES = (
    Recipe(schema_evolution, ("id > 1", "c IS NULL", "aa = 'a2'", "b < 2", "de < 0"), history=True),
    Recipe(swapped_names, ("a = 'second'", "b = 'third'")),
    Recipe(nested_evolution, ("st.xx = 1", "st.w IS NULL", "st.y = 'y3'")),
    Recipe(
        partition_evolution, ("ts < TIMESTAMP '2024-01-03 00:00:00+00:00'", "cat = 'c1'", "id = 3", "cat LIKE 'c%'")
    ),
    Recipe(v1_partition_evolution, ("p = 'p1'", "id = 4")),
    Recipe(dropped_source, ("s = 's1'", "id > 3"), catalog=PLAIN_LOCATIONS),
    Recipe(upgraded, ("id > 4", "s = 's1'")),
    Recipe(upgraded_unwritten),
    Recipe(branch_and_tag, ("text = 'a'", "more IS NULL")),
    Recipe(name_mapping, ("text = 's1'", "st.y = 2", "gone IS NULL", "id > 2"), catalog=PLAIN_LOCATIONS),
    Recipe(hive_partitioned, ("p = 1", "id < 2", "p = 0 AND s = 's2'")),
)
