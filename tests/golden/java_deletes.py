"""Tables of Iceberg Java: rows deleted by delete files."""

from typing import Any

from tests.golden.java_maker import PLAIN_LOCATIONS, Recipe, WriteContext

_MERGE_ON_READ = "'write.delete.mode' = 'merge-on-read', 'write.update.mode' = 'merge-on-read'"
_CREATE = (
    f"CREATE TABLE {{t}} (id BIGINT, s STRING) USING iceberg TBLPROPERTIES ('format-version' = '2', {_MERGE_ON_READ})"
)
_TEN = "INSERT INTO {{t}} SELECT /*+ COALESCE(1) */ id, concat('s', id) FROM range({}, {})"


def position_deletes(t: WriteContext) -> None:
    """Position deletes of one data file, by a delete and an update, which takes in the deletes before it."""
    t.sql(
        _CREATE,
        _TEN.format(0, 8),
        "DELETE FROM {t} WHERE id IN (2, 3)",
        "UPDATE {t} SET s = 'updated' WHERE id = 5",
    )


def partition_position_deletes(t: WriteContext) -> None:
    """Position deletes of several data files in one, per partition."""
    t.sql(
        "CREATE TABLE {t} (id BIGINT, p STRING) USING iceberg PARTITIONED BY (p) "
        f"TBLPROPERTIES ('format-version' = '2', 'write.delete.granularity' = 'partition', {_MERGE_ON_READ})",
        "INSERT INTO {t} SELECT id, concat('p', id % 2) FROM range(0, 6)",
        "INSERT INTO {t} SELECT id, concat('p', id % 2) FROM range(6, 12)",
        "DELETE FROM {t} WHERE id IN (1, 2, 7, 8)",
    )


def deletes_after_compaction(t: WriteContext) -> None:
    """A compaction that took deletes in; the delete files it left are removed or harmless."""
    t.sql(
        _CREATE,
        _TEN.format(0, 4),
        _TEN.format(4, 8),
        "DELETE FROM {t} WHERE id IN (1, 6)",
        "CALL {procedure}.rewrite_data_files(table => '{name}', options => map('rewrite-all', 'true'))",
        "DELETE FROM {t} WHERE id = 7",
    )


def equality_deletes(t: WriteContext) -> None:
    """Equality deletes on one column, with null as a key; the same keys inserted again afterwards."""
    t.sql(
        "CREATE TABLE {t} (id BIGINT, s STRING, k INT) USING iceberg TBLPROPERTIES ('format-version' = '2')",
        "INSERT INTO {t} SELECT /*+ COALESCE(1) */ id, concat('s', id), if(id = 5, null, cast(id AS int)) "
        "FROM range(0, 6)",
    )
    t.delete_equal(t.table(), "k", [{"k": 2}, {"k": 3}, {"k": None}])
    t.sql("INSERT INTO {t} VALUES (20, 'again', 2), (21, null, null)")


def equality_deletes_on_two(t: WriteContext) -> None:
    """Equality deletes on two columns, where both must match, also as null; then on one of them."""
    t.sql(
        "CREATE TABLE {t} (id BIGINT, s STRING, k INT) USING iceberg TBLPROPERTIES ('format-version' = '2')",
        "INSERT INTO {t} SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 'a', 1), (2, 'a', 2), (3, 'b', 1), (4, null, 1), "
        "(5, null, null), (6, 'c', null), (7, 'd', 9)",
    )
    keys: list[dict[str, Any]] = [{"s": "a", "k": 1}, {"s": "b", "k": 2}, {"s": None, "k": None}, {"s": "c", "k": None}]
    t.delete_equal(t.table(), "both", keys)
    t.delete_equal(t.table(), "one", [{"s": "d"}])


def equality_deletes_in_partition(t: WriteContext) -> None:
    """An equality delete file that belongs to one partition."""
    t.sql(
        "CREATE TABLE {t} (id BIGINT, p STRING, k INT) USING iceberg PARTITIONED BY (p) "
        "TBLPROPERTIES ('format-version' = '2')",
        "INSERT INTO {t} SELECT id, concat('p', id % 2), cast(id div 2 AS int) FROM range(0, 8)",
    )
    table = t.table()
    t.delete_equal(table, "p0", [{"k": 1}, {"k": 2}], partition=t.partition_of(table, {"p": "p0"}))


def equality_deletes_everywhere(t: WriteContext) -> None:
    """An equality delete file of the unpartitioned spec, which applies to files of every spec."""
    t.sql(
        "CREATE TABLE {t} (id BIGINT, p STRING, k INT) USING iceberg TBLPROPERTIES ('format-version' = '2')",
        "INSERT INTO {t} SELECT /*+ COALESCE(1) */ id, concat('p', id % 2), cast(id div 2 AS int) FROM range(0, 6)",
        "ALTER TABLE {t} ADD PARTITION FIELD p",
        "INSERT INTO {t} SELECT id, concat('p', id % 2), cast((id - 6) div 2 AS int) FROM range(6, 12)",
    )
    table = t.table()
    t.delete_equal(table, "all", [{"k": 1}, {"k": 2}], spec=table.specs()[0])


def equality_deletes_of_types(t: WriteContext) -> None:
    """Equality deletes by a uuid, a decimal, a date and a timestamp at once, and by a column widened since."""
    kinds = ("long", "uuid", "decimal(20, 2)", "date", "timestamptz", "int")
    names = ("id", "u", "de", "dt", "tz", "n")
    fields = [
        {"id": at, "name": name, "required": False, "type": kind}
        for at, (name, kind) in enumerate(zip(names, kinds, strict=True), 1)
    ]
    table = t.create({"fields": fields}, 2)
    key: dict[str, Any] = {
        "u": "f79c3e09-677c-4bbd-a479-3f349cb785e7",
        "de": "1.50",
        "dt": "1969-12-31",
        "tz": "2026-01-01T00:00:00.000001+00:00",
    }
    rows = [{"id": 1, **key, "n": 1}, {"id": 2, **key, "de": "1.51", "n": 2}, {"id": 3, **key, "tz": None, "n": 3}]
    t.append(table, "rows", [*rows, {"id": 4, "n": 4}])
    t.delete_equal(table, "all", [key])
    t.delete_equal(table, "number", [{"n": 4}])
    long = t.iceberg.types.Types.LongType.get()
    table.updateSchema().updateColumn("n", long).commit()


def v3_equality_deletes(t: WriteContext) -> None:
    """Equality deletes and a deletion vector of one data file, in version 3."""
    t.sql(
        "CREATE TABLE {t} (id BIGINT, s STRING, k INT) USING iceberg "
        f"TBLPROPERTIES ('format-version' = '3', {_MERGE_ON_READ})",
        "INSERT INTO {t} SELECT /*+ COALESCE(1) */ id, concat('s', id), cast(id AS int) FROM range(0, 6)",
    )
    t.delete_equal(t.table(), "k", [{"k": 2}, {"k": 3}])
    t.sql("DELETE FROM {t} WHERE id = 4")


RECIPES = (
    Recipe(position_deletes, ("id > 3", "s = 's5'", "s = 'updated'"), history=True),
    Recipe(partition_position_deletes, ("p = 'p1'", "id < 8"), catalog=PLAIN_LOCATIONS),
    Recipe(deletes_after_compaction, ("id > 3",)),
    Recipe(equality_deletes, ("k = 2", "k IS NULL", "id < 4", "s = 's4'")),
    Recipe(equality_deletes_on_two, ("k = 1", "id > 2")),
    Recipe(equality_deletes_in_partition, ("p = 'p0'", "k = 1", "id > 3")),
    Recipe(equality_deletes_everywhere, ("p = 'p0'", "k = 0", "id > 3")),
    Recipe(equality_deletes_of_types, by_spark=False),
    Recipe(v3_equality_deletes, ("k > 1",)),
)
