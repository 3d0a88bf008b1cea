"""Tables of Iceberg Java: every type, every transform, other file formats."""

from typing import Any

from tests.golden.java_maker import PLAIN_LOCATIONS, Recipe, WriteContext

_PRIMITIVES = (
    "boolean",
    "int",
    "long",
    "float",
    "double",
    "decimal(1, 0)",
    "decimal(9, 2)",
    "decimal(18, 4)",
    "decimal(38, 10)",
    "date",
    "time",
    "timestamp",
    "timestamptz",
    "string",
    "uuid",
    "fixed[5]",
    "binary",
)
_LOW = (
    False,
    -(2**31),
    -(2**63),
    -3.4028234663852886e38,
    -1.7976931348623157e308,
    "-9",
    "-9999999.99",
    "-99999999999999.9999",
    "-" + "9" * 28 + "." + "9" * 10,
    "0001-01-01",
    "00:00:00",
    "0001-01-01T00:00:00",
    "1969-12-31T23:59:59.999999+00:00",
    "",
    "00000000-0000-0000-0000-000000000000",
    "0000000000",
    "",
)
_HIGH = (
    True,
    2**31 - 1,
    2**63 - 1,
    3.4028234663852886e38,
    1.7976931348623157e308,
    "9",
    "9999999.99",
    "99999999999999.9999",
    "9" * 28 + "." + "9" * 10,
    "9999-12-31",
    "23:59:59.999999",
    "9999-12-31T23:59:59.999999",
    "2026-03-01T01:02:03.000004+00:00",
    "zażółć \U0001f600",
    "f79c3e09-677c-4bbd-a479-3f349cb785e7",
    "fffefd8000",
    "00ff80",
)


def types(t: WriteContext) -> None:
    """Every primitive type of version 2: its lowest and its highest value, and null."""
    names = [_column(kind) for kind in _PRIMITIVES]
    table = t.create(_schema(["id", *names], ["long", *_PRIMITIVES]), 2)
    rows = [dict(zip(names, values, strict=True)) for values in (_LOW, _HIGH)]
    t.append(table, "all", [{"id": 1, **rows[0]}, {"id": 2, **rows[1]}, {"id": 3}])


def spark_types(t: WriteContext) -> None:
    """The types that Spark writes, with nulls, over two files."""
    t.sql(
        "CREATE TABLE {t} (id BIGINT, i INT, s STRING, d DOUBLE, f FLOAT, b BOOLEAN, dt DATE, tz TIMESTAMP, "
        "ts TIMESTAMP_NTZ, de DECIMAL(10, 2), bin BINARY) USING iceberg TBLPROPERTIES ('format-version' = '2')",
    )
    for first, last in ((0, 4), (4, 7)):
        t.sql(
            "INSERT INTO {t} SELECT /*+ COALESCE(1) */ id, cast(id AS int), concat('s', id), id * 1.5D, "
            "cast(id * 0.1 AS float), id % 2 = 0, date_add(DATE '1969-12-30', cast(id AS int)), "
            "timestamp_micros(id * 3600000001 - 1), cast(timestamp_micros(-id) AS timestamp_ntz), "
            f"cast(id * 1.25 - 3 AS decimal(10, 2)), cast(concat('b', id) AS binary) FROM range({first}, {last}) "
            f"UNION ALL SELECT {last + 100}, null, null, null, null, null, null, null, null, null, null",
        )


def nested(t: WriteContext) -> None:
    """Structs, lists and maps in each other, with null and nothing at each level."""
    t.sql(
        "CREATE TABLE {t} (id BIGINT, st STRUCT<x: INT, y: STRUCT<z: STRING, w: DECIMAL(20, 3)>>, l ARRAY<INT>, "
        "m MAP<STRING, INT>, ls ARRAY<STRUCT<p: INT, q: ARRAY<STRING>>>, mm MAP<INT, MAP<STRING, STRUCT<a: DATE>>>) "
        "USING iceberg TBLPROPERTIES ('format-version' = '2')",
        "INSERT INTO {t} SELECT /*+ COALESCE(1) */ * FROM VALUES "
        "(1, named_struct('x', 1, 'y', named_struct('z', 'a', 'w', 1.5)), array(1, 2), map('k', 1, 'n', null), "
        "array(named_struct('p', 1, 'q', array('u', null)), named_struct('p', null, 'q', null)), "
        "map(1, map('i', named_struct('a', DATE '2026-01-01')))), "
        "(2, null, null, null, null, null), "
        "(3, named_struct('x', null, 'y', null), array(), map(), array(), map()), "
        "(4, named_struct('x', 4, 'y', named_struct('z', null, 'w', null)), array(null, 7), map('', 0), "
        "array(null), map(2, null, 3, map()))",
    )


def values_by_bucket(t: WriteContext) -> None:
    """Buckets of the types that Spark cannot write: time, uuid, fixed, binary; each row in a file of its own."""
    kinds = ("time", "uuid", "fixed[5]", "binary", "timestamp")
    names = [_column(kind) for kind in kinds]
    spec = [("bucket", name, 16) for name in names]
    table = t.create(_schema(["id", *names], ["long", *kinds]), 2, spec)
    at = [_PRIMITIVES.index(kind) for kind in kinds]
    low, high = ({name: values[i] for name, i in zip(names, at, strict=True)} for values in (_LOW, _HIGH))
    t.append(table, "row", [{"id": 1, **low}, {"id": 2, **high}, {"id": 3}])


def _transforms(t: WriteContext, version: int) -> None:
    t.sql(
        "CREATE TABLE {t} (id BIGINT, i INT, s STRING, de DECIMAL(9, 2), b BINARY, y DATE, m TIMESTAMP_NTZ, "
        "d TIMESTAMP, h TIMESTAMP, n INT) USING iceberg PARTITIONED BY (bucket(5, id), truncate(10, i), "
        "truncate(2, s), truncate(50, de), bucket(3, s), years(y), months(m), days(d), hours(h), n) "
        f"TBLPROPERTIES ('format-version' = '{version}')",
        "INSERT INTO {t} SELECT /*+ COALESCE(1) */ * FROM VALUES "
        "(1, 34, 'abcdef', 10.65, X'00ff', DATE '2017-11-16', TIMESTAMP_NTZ '2017-11-16 22:31:08', "
        "TIMESTAMP '2017-11-16 22:31:08', TIMESTAMP '2017-11-16 22:31:08', 7), "
        "(-1, -1, 'zażółć', -10.65, X'', DATE '1969-12-31', TIMESTAMP_NTZ '1969-12-31 23:59:59.999999', "
        "TIMESTAMP '1969-12-31 23:59:59.999999', TIMESTAMP '1969-12-31 22:59:59.999999', -7), "
        "(0, 0, '', 0.00, X'80', DATE '1970-01-01', TIMESTAMP_NTZ '1970-01-01 00:00:00', "
        "TIMESTAMP '1970-01-01 00:00:00', TIMESTAMP '1970-01-01 00:00:00', 0), "
        "(-9000000000, -2147483640, '\U0001f600\U0001f601\U0001f602', -99999.99, X'01', DATE '0001-01-01', "
        "TIMESTAMP_NTZ '1900-01-01 00:00:00', TIMESTAMP '1582-10-15 00:00:00', TIMESTAMP '1960-02-29 12:00:00', 1), "
        "(5, null, null, null, null, null, null, null, null, null)",
    )


def v1_transforms(t: WriteContext) -> None:
    """Every transform in version 1: negative values, before 1970, null."""
    _transforms(t, 1)


def v2_transforms(t: WriteContext) -> None:
    """Every transform in version 2: negative values, before 1970, null."""
    _transforms(t, 2)


def v3_transforms(t: WriteContext) -> None:
    """Every transform in version 3: negative values, before 1970, null."""
    _transforms(t, 3)


def avro_data(t: WriteContext) -> None:
    """Data files in Avro."""
    _formatted(t, "avro")


def orc_data(t: WriteContext) -> None:
    """Data files in ORC."""
    _formatted(t, "orc")


def _formatted(t: WriteContext, name: str) -> None:
    t.sql(
        "CREATE TABLE {t} (id BIGINT, s STRING) USING iceberg "
        f"TBLPROPERTIES ('format-version' = '2', 'write.format.default' = '{name}')",
        "INSERT INTO {t} SELECT /*+ COALESCE(1) */ id, concat('s', id) FROM range(0, 5)",
    )


def _column(kind: str) -> str:
    return "c_" + "".join(letter if letter.isalnum() else "_" for letter in kind).replace("__", "_").strip("_")


def _schema(names: list[str], kinds: list[str]) -> dict[str, Any]:
    pairs = enumerate(zip(names, kinds, strict=True), 1)
    return {"fields": [{"id": at, "name": n, "required": False, "type": k} for at, (n, k) in pairs]}


_BY_TRANSFORM = (
    "i = -1",
    "i < 0",
    "s LIKE 'ab%'",
    "de > 0",
    "y < DATE '1970-01-01'",
    "m >= TIMESTAMP_NTZ '1970-01-01 00:00:00'",
    "d < TIMESTAMP '1970-01-01 00:00:00+00:00'",
    "h IS NULL",
    "id = -9000000000",
    "n IN (0, 7)",
)
RECIPES = (
    Recipe(types, by_spark=False),
    Recipe(
        spark_types, ("i > 2", "s = 's5'", "dt < DATE '1970-01-01'", "de < 0", "b", "f IS NULL", "d BETWEEN 1 AND 5")
    ),
    Recipe(nested, ("st.x = 4", "st.y.z = 'a'", "st.x IS NULL"), catalog=PLAIN_LOCATIONS),
    Recipe(values_by_bucket, by_spark=False),
    Recipe(v1_transforms, _BY_TRANSFORM),
    Recipe(v2_transforms, _BY_TRANSFORM),
    Recipe(v3_transforms, _BY_TRANSFORM),
    Recipe(avro_data),
    Recipe(orc_data),
)
