"""Tables of Iceberg Java: what version 3 brought."""

from collections.abc import Sequence
from typing import Any

from tests.golden.java_maker import Recipe, WriteContext

_MERGE_ON_READ = (
    "'write.delete.mode' = 'merge-on-read', 'write.update.mode' = 'merge-on-read', 'write.merge.mode' = 'merge-on-read'"
)
_CREATE = (
    f"CREATE TABLE {{t}} (id BIGINT, s STRING) USING iceberg TBLPROPERTIES ('format-version' = '3', {_MERGE_ON_READ})"
)
_TEN = "INSERT INTO {{t}} SELECT /*+ COALESCE(1) */ id, concat('s', id) FROM range({}, {})"


def v3_plain(t: WriteContext) -> None:
    """Two appends in version 3."""
    t.sql("CREATE TABLE {t} (id BIGINT, s STRING) USING iceberg TBLPROPERTIES ('format-version' = '3')")
    t.sql(_TEN.format(0, 3), _TEN.format(3, 6))


def deletion_vector(t: WriteContext) -> None:
    """One deletion vector."""
    t.sql(_CREATE, _TEN.format(0, 6), "DELETE FROM {t} WHERE id IN (2, 3)")


def deletion_vector_replaced(t: WriteContext) -> None:
    """A deletion vector that a later one replaced; the history still reads the first."""
    t.sql(_CREATE, _TEN.format(0, 6), "DELETE FROM {t} WHERE id IN (2, 3)", "DELETE FROM {t} WHERE id = 5")


def deletion_vectors_in_one_file(t: WriteContext) -> None:
    """Four deletion vectors, of the files of two partitions, that share a Puffin file."""
    t.sql(
        "CREATE TABLE {t} (id BIGINT, p STRING) USING iceberg PARTITIONED BY (p) "
        f"TBLPROPERTIES ('format-version' = '3', {_MERGE_ON_READ})",
        "INSERT INTO {t} SELECT id, concat('p', id % 2) FROM range(0, 6)",
        "INSERT INTO {t} SELECT id, concat('p', id % 2) FROM range(6, 12)",
        "DELETE FROM {t} WHERE id IN (1, 2, 7, 8)",
    )


def position_deletes_upgraded(t: WriteContext) -> None:
    """Position deletes of version 2, one of them replaced by a deletion vector after the upgrade."""
    t.sql(
        _CREATE.replace("'3'", "'2'"),
        _TEN.format(0, 4),
        _TEN.format(4, 8),
        "DELETE FROM {t} WHERE id IN (1, 5)",
        "ALTER TABLE {t} SET TBLPROPERTIES ('format-version' = '3')",
        "DELETE FROM {t} WHERE id = 6",
    )


def row_lineage(t: WriteContext) -> None:
    """Row ids through an update and a merge: kept by rows that changed, new for rows that came."""
    t.sql(
        _CREATE,
        _TEN.format(0, 5),
        "UPDATE {t} SET s = 'updated' WHERE id = 1",
        "MERGE INTO {t} USING (SELECT id, concat('m', id) AS s FROM range(4, 6)) AS source ON {t}.id = source.id "
        "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *",
    )


def row_lineage_copied(t: WriteContext) -> None:
    """Row ids through an update that copies the file: unchanged rows keep their sequence number as well."""
    t.sql(
        "CREATE TABLE {t} (id BIGINT, s STRING) USING iceberg TBLPROPERTIES ('format-version' = '3')",
        _TEN.format(0, 4),
        "UPDATE {t} SET s = 'updated' WHERE id = 1",
    )


def row_lineage_compacted(t: WriteContext) -> None:
    """Row ids through a compaction, which writes them into the files."""
    t.sql(
        _CREATE,
        _TEN.format(0, 3),
        _TEN.format(3, 6),
        "DELETE FROM {t} WHERE id = 1",
        "CALL {procedure}.rewrite_data_files(table => '{name}', options => map('rewrite-all', 'true'))",
        _TEN.format(6, 8),
    )


def defaults(t: WriteContext) -> None:
    """Columns added with a default: older files read it; a null that was written stays null."""
    t.sql(
        "CREATE TABLE {t} (id BIGINT, s STRING) USING iceberg TBLPROPERTIES ('format-version' = '3')", _TEN.format(0, 2)
    )
    _add_defaults(t, {"number": ("int", "42"), "text": ("string", "zażółć"), "day": ("date", "1969-12-31")})
    t.sql("INSERT INTO {t} VALUES (2, 's2', 7, 'own', DATE '2026-01-01'), (3, 's3', null, null, null)")


def defaults_of_types(t: WriteContext) -> None:
    """A default of every primitive type."""
    table = t.create(_schema("long"), 3)
    t.append(table, "before", [{"id": 1}])
    given = {
        "boolean": "true",
        "int": "-42",
        "long": "5000000000",
        "float": "0.1",
        "double": "-0.25",
        "decimal(9, 2)": "1.50",
        "decimal(38, 10)": "-12345678901234567890.0000000001",
        "date": "1969-12-31",
        "time": "23:59:59.999999",
        "timestamp": "1969-12-31T23:59:59.999999",
        "timestamptz": "2026-01-01T00:00:00.000001+00:00",
        "timestamp_ns": "1969-12-31T23:59:59.999999999",
        "timestamptz_ns": "2026-01-01T00:00:00.000000001+00:00",
        "string": "text",
        "uuid": "f79c3e09-677c-4bbd-a479-3f349cb785e7",
        "fixed[3]": "00ff80",
        "binary": "fffe",
    }
    names = ["c_" + "".join(letter for letter in kind if letter.isalnum() or letter == "_") for kind in given]
    _add_defaults(t, dict(zip(names, given.items(), strict=True)))
    table.refresh()
    t.append(table, "after", [{"id": 2}])


def _add_defaults(t: WriteContext, columns: dict[str, tuple[str, str]]) -> None:
    change = t.table().updateSchema()
    for name, (kind, text) in columns.items():
        type_ = t.iceberg.types.Types.fromPrimitiveString(kind)
        change.addColumn(name, type_, f"a {kind}", _literal(t, type_, text))
    change.commit()


def _literal(t: WriteContext, kind: Any, text: str) -> Any:
    name = kind.typeId().toString()
    literal = t.iceberg.expressions.Expressions.lit
    if name == "BOOLEAN":
        return literal(text == "true")
    if name in ("FIXED", "BINARY"):
        return literal(t.spark._jvm.java.nio.ByteBuffer.wrap(bytes.fromhex(text))).to(kind)
    if name in ("INTEGER", "LONG"):
        return literal(int(text)).to(kind)
    return literal(float(text)).to(kind) if name in ("FLOAT", "DOUBLE") else literal(text).to(kind)


def required_default(t: WriteContext) -> None:
    """A required column that was added with a default, and a write default changed afterwards."""
    t.sql(
        "CREATE TABLE {t} (id BIGINT, s STRING) USING iceberg TBLPROPERTIES ('format-version' = '3')", _TEN.format(0, 2)
    )
    kinds, literal = t.iceberg.types.Types, t.iceberg.expressions.Expressions.lit
    t.table().updateSchema().addRequiredColumn("kind", kinds.StringType.get(), "required", literal("old")).commit()
    t.table().updateSchema().updateColumnDefault("kind", literal("new")).commit()
    t.sql("INSERT INTO {t} VALUES (2, 's2', 'own')")


def nested_defaults(t: WriteContext) -> None:
    """Defaults of fields within a struct, within the struct of a list; a null struct stays null."""
    t.sql(
        "CREATE TABLE {t} (id BIGINT, st STRUCT<x: INT>, l ARRAY<STRUCT<p: INT>>) USING iceberg "
        "TBLPROPERTIES ('format-version' = '3')",
        "INSERT INTO {t} SELECT /*+ COALESCE(1) */ * FROM VALUES "
        "(1, named_struct('x', 1), array(named_struct('p', 1), null)), (2, null, array())",
    )
    kinds, literal = t.iceberg.types.Types, t.iceberg.expressions.Expressions.lit
    change = t.table().updateSchema()
    change.addColumn("st", "y", kinds.StringType.get(), "inner", literal("inner default"))
    change.addColumn("l", "q", kinds.IntegerType.get(), "in a list", literal(5))
    change.commit()
    t.sql("INSERT INTO {t} VALUES (3, named_struct('x', 3, 'y', 'own'), array(named_struct('p', 3, 'q', 33)))")


def nanoseconds(t: WriteContext) -> None:
    """timestamp_ns and timestamptz_ns: before 1970, to the nanosecond, the ends of the range, null."""
    table = t.create(_schema("long", "timestamp_ns", "timestamptz_ns"), 3)
    t.append(
        table,
        "rows",
        [
            {"id": 1, "a": "2026-01-01T00:00:00.123456789", "b": "2026-01-01T00:00:00.123456789+00:00"},
            {"id": 2, "a": "1969-12-31T23:59:59.999999999", "b": "1969-12-31T23:59:59.999999999+00:00"},
            {"id": 3, "a": "1677-09-21T00:12:43.145224193", "b": "2262-04-11T23:47:16.854775807+00:00"},
            {"id": 4},
        ],
    )


def nanoseconds_partitioned(t: WriteContext) -> None:
    """Transforms of nanoseconds: day, hour and bucket."""
    spec = [("day", "a"), ("hour", "b"), ("bucket", "a", 8)]
    table = t.create(_schema("long", "timestamp_ns", "timestamptz_ns"), 3, spec)
    rows: list[dict[str, Any]] = [
        {"id": 1, "a": "2026-01-01T00:00:00.123456789", "b": "2026-01-01T00:00:00.123456789+00:00"},
        {"id": 2, "a": "1969-12-31T23:59:59.999999999", "b": "1969-12-31T23:59:59.999999999+00:00"},
        {"id": 3},
    ]
    t.append(table, "row", rows)


def unknown_type(t: WriteContext) -> None:
    """A column of the type unknown, which is in no file and always null."""
    table = t.create(_schema("long", "unknown", "string"), 3)
    t.append(table, "rows", [{"id": 1, "b": "x"}, {"id": 2}])


def variants(t: WriteContext) -> None:
    """Variants: a number, a text, an object, an array, the variant null, and null.

    Java cannot read them in this environment (a library of Spark 3.5 is too old): the rows are those that it wrote.
    """
    variants, jvm = t.iceberg.variants, t.spark._jvm
    names = jvm.java.util.ArrayList(["a", "b"])
    metadata = variants.Variants.metadata(names)
    object_ = variants.Variants.object(metadata)
    object_.put("a", variants.Variants.of(7))
    object_.put("b", variants.Variants.of("text"))
    array = variants.Variants.array()
    array.add(variants.Variants.of(1))
    array.add(variants.Variants.of(True))
    values = (variants.Variants.of(34), variants.Variants.of("text"), object_, array, variants.Variants.ofNull())
    rows = [{"id": at, "a": variants.Variant.of(metadata, value)} for at, value in enumerate(values)]
    table = t.create(_schema("long", "variant"), 3)
    t.append(table, "rows", [*rows, {"id": 9}])


def geospatial(t: WriteContext) -> None:
    """Columns of geometry and geography; Java writes no such values, so there are no rows."""
    t.create(_schema("long", "geometry", "geometry(srid:3857)", "geography", "geography(srid:4269, karney)"), 3)


def _schema(*kinds: str) -> dict[str, Any]:
    names: Sequence[str] = ("id", *"abcdefgh"[: len(kinds) - 1])
    pairs = enumerate(zip(names, kinds, strict=True), 1)
    return {"fields": [{"id": at, "name": name, "required": False, "type": kind} for at, (name, kind) in pairs]}


RECIPES = (
    Recipe(v3_plain, ("id > 3", "s = 's1'")),
    Recipe(deletion_vector, ("id > 2", "s = 's2'")),
    Recipe(deletion_vector_replaced, ("id > 2",), history=True),
    Recipe(deletion_vectors_in_one_file, ("p = 'p1'", "id < 8")),
    Recipe(position_deletes_upgraded, ("id > 3",)),
    Recipe(row_lineage, ("s = 'updated'", "id >= 4")),
    Recipe(row_lineage_copied, ("id < 2",)),
    Recipe(row_lineage_compacted, ("id > 2",)),
    Recipe(defaults, ("id = 1", "s = 's2'")),
    Recipe(defaults_of_types, by_spark=False),
    Recipe(required_default, ("id > 0",)),
    Recipe(nested_defaults, ("id = 1", "st.x = 3")),
    Recipe(nanoseconds, by_spark=False),
    Recipe(nanoseconds_partitioned, by_spark=False),
    Recipe(unknown_type, by_spark=False),
    Recipe(variants, by_spark=False, as_written=True),
    Recipe(geospatial, by_spark=False),
)
