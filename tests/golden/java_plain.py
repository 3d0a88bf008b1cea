"""Tables of Iceberg Java: the plain cases of each version, and what surrounds rows (statistics, codecs, orders)."""

import json

from tests.golden.java_maker import PLAIN_LOCATIONS, Recipe, WriteContext

_TEN = "SELECT /*+ COALESCE(1) */ id, concat('s', id) AS s FROM range({first}, {last})"


def v1_plain(t: WriteContext) -> None:
    """Format version 1, two appends."""
    t.sql(
        "CREATE TABLE {t} (id BIGINT, s STRING) USING iceberg TBLPROPERTIES ('format-version' = '1')",
        "INSERT INTO {t} " + _TEN.format(first=0, last=5),
        "INSERT INTO {t} " + _TEN.format(first=5, last=8),
    )


def v1_partitioned_delete(t: WriteContext) -> None:
    """Format version 1, partitioned; a partition deleted by metadata alone, then a file copied without a row."""
    t.sql(
        "CREATE TABLE {t} (id BIGINT, p STRING) USING iceberg PARTITIONED BY (p) "
        "TBLPROPERTIES ('format-version' = '1')",
        "INSERT INTO {t} SELECT id, concat('p', id % 3) FROM range(0, 9)",
        "DELETE FROM {t} WHERE p = 'p1'",
        "DELETE FROM {t} WHERE id = 2",
    )


def v1_manifests_in_snapshot(t: WriteContext) -> None:
    """A snapshot of version 1 that lists its manifests itself, as before manifest lists.

    Java no longer writes such snapshots, but reads them: the metadata file is edited after Java wrote it.
    """
    t.sql(
        "CREATE TABLE {t} (id BIGINT, s STRING) USING iceberg PARTITIONED BY (truncate(2, s)) "
        "TBLPROPERTIES ('format-version' = '1')",
        "INSERT INTO {t} " + _TEN.format(first=0, last=2),
        "INSERT INTO {t} " + _TEN.format(first=2, last=4),
    )
    t.expire()
    table = t.table()
    manifests = [m.path() for m in table.currentSnapshot().allManifests(table.io())]
    for unused in t.folder.glob("metadata/snap-*.avro"):
        unused.unlink()
    path = t.metadata_path()
    metadata = json.loads(path.read_text())
    (snapshot,) = metadata["snapshots"]
    del snapshot["manifest-list"]
    snapshot["manifests"] = manifests
    path.write_text(json.dumps(metadata))
    path.with_name(f".{path.name}.crc").unlink()


def history(t: WriteContext) -> None:
    """Three snapshots: an append, an append, a whole overwrite."""
    t.sql(
        "CREATE TABLE {t} (id BIGINT, s STRING) USING iceberg TBLPROPERTIES ('format-version' = '2')",
        "INSERT INTO {t} " + _TEN.format(first=0, last=3),
        "INSERT INTO {t} " + _TEN.format(first=3, last=6),
        "INSERT OVERWRITE {t} VALUES (100, 'new')",
    )


def plain_locations(t: WriteContext) -> None:
    """Locations are paths without a scheme."""
    t.sql(
        "CREATE TABLE {t} (id BIGINT, s STRING) USING iceberg TBLPROPERTIES ('format-version' = '2')",
        "INSERT INTO {t} " + _TEN.format(first=0, last=5),
    )


def empty(t: WriteContext) -> None:
    """Never written: no snapshot."""
    t.sql("CREATE TABLE {t} (id BIGINT, s STRING) USING iceberg TBLPROPERTIES ('format-version' = '2')")


def emptied(t: WriteContext) -> None:
    """Written, then emptied by a delete: the last snapshot has no live file."""
    t.sql(
        "CREATE TABLE {t} (id BIGINT, s STRING) USING iceberg TBLPROPERTIES ('format-version' = '2')",
        "INSERT INTO {t} " + _TEN.format(first=0, last=5),
        "DELETE FROM {t}",
    )


def gzip_metadata(t: WriteContext) -> None:
    """The metadata file is compressed with gzip."""
    t.sql(
        "CREATE TABLE {t} (id BIGINT, s STRING) USING iceberg "
        "TBLPROPERTIES ('format-version' = '2', 'write.metadata.compression-codec' = 'gzip')",
        "INSERT INTO {t} " + _TEN.format(first=0, last=5),
    )


def parquet_codecs(t: WriteContext) -> None:
    """Data files compressed with snappy, gzip and not at all."""
    t.sql("CREATE TABLE {t} (id BIGINT, s STRING) USING iceberg TBLPROPERTIES ('format-version' = '2')")
    for at, codec in enumerate(("snappy", "gzip", "uncompressed")):
        t.sql(
            f"ALTER TABLE {{t}} SET TBLPROPERTIES ('write.parquet.compression-codec' = '{codec}')",
            "INSERT INTO {t} " + _TEN.format(first=at * 3, last=at * 3 + 3),
        )


def metrics_modes(t: WriteContext) -> None:
    """Statistics per column: none, only counts, truncated, whole."""
    t.sql(
        "CREATE TABLE {t} (id BIGINT, nothing STRING, counted STRING, cut STRING, whole STRING) USING iceberg "
        "TBLPROPERTIES ('format-version' = '2', 'write.metadata.metrics.default' = 'none',"
        "'write.metadata.metrics.column.counted' = 'counts', 'write.metadata.metrics.column.cut' = 'truncate(3)',"
        "'write.metadata.metrics.column.whole' = 'full')",
        "INSERT INTO {t} SELECT /*+ COALESCE(1) */ id, s, if(id = 2, null, s), s, concat(s, s, s) "
        "FROM (SELECT id, concat('text ', id) AS s FROM range(0, 5))",
    )


def required_and_sorted(t: WriteContext) -> None:
    """Required columns, identifier fields, and a sort order with a transform."""
    t.sql(
        "CREATE TABLE {t} (id BIGINT NOT NULL, s STRING NOT NULL, o STRING) USING iceberg "
        "TBLPROPERTIES ('format-version' = '2')",
        "ALTER TABLE {t} SET IDENTIFIER FIELDS id",
        "ALTER TABLE {t} WRITE ORDERED BY s DESC NULLS LAST, bucket(4, id)",
        "INSERT INTO {t} SELECT id, concat('s', id), if(id = 1, 'x', null) FROM range(0, 5)",
    )


def not_a_number(t: WriteContext) -> None:
    """NaN, both infinities, both zeros and null, as float and as double; one file holds NaN alone."""
    t.sql(
        "CREATE TABLE {t} (id BIGINT, d DOUBLE, f FLOAT) USING iceberg TBLPROPERTIES ('format-version' = '2')",
        "INSERT INTO {t} SELECT /*+ COALESCE(1) */ * FROM VALUES "
        "(1, double('NaN'), float('NaN')), (2, null, null), (3, double('Infinity'), float('-Infinity')), "
        "(4, 1.5D, float(0.1)), (5, -0.0D, float(-0.0D)), (6, 0.0D, float(0.0D)), (7, -2.5D, float(7))",
        "INSERT INTO {t} VALUES (8, double('NaN'), float('NaN'))",
    )


def statistics_file(t: WriteContext) -> None:
    """A Puffin file of table statistics and a file of partition statistics."""
    t.sql(
        "CREATE TABLE {t} (id BIGINT, p STRING) USING iceberg PARTITIONED BY (p) "
        "TBLPROPERTIES ('format-version' = '2')",
        "INSERT INTO {t} SELECT id, concat('p', id % 2) FROM range(0, 6)",
        "CALL {procedure}.compute_table_stats('{name}')",
        "CALL {procedure}.compute_partition_stats('{name}')",
    )


def cut_bounds(t: WriteContext) -> None:
    """Bounds that are cut: within surrogate pairs, before the greatest code point, binary of 0xff; one file per row."""
    strings = (
        "'" + "\U0001f600" * 20 + "'",  # sixteen code points, but thirty-two units of UTF-16
        "'" + "\U0010ffff" * 20 + "'",  # nothing is greater
        "concat(repeat('a', 15), '\U0010ffff', 'z')",  # the one before the greatest is raised
        "concat(repeat('b', 15), '\\ud7ff', 'z')",  # the next code point is a surrogate
        "repeat('c', 16)",  # fits as it is
    )
    binary = ("unhex(repeat('fe', 20))", "unhex(repeat('ff', 20))")
    rows = (f"({at}, {text}, {binary[at % 2]})" for at, text in enumerate(strings))
    t.sql(
        "CREATE TABLE {t} (id BIGINT, s STRING, b BINARY) USING iceberg PARTITIONED BY (id) "
        "TBLPROPERTIES ('format-version' = '2')",
        f"INSERT INTO {{t}} VALUES {', '.join(rows)}",
    )


_ROWS = ("id > 3", "id <= 2", "s = 's4'")
RECIPES = (
    Recipe(v1_plain, _ROWS, history=True),
    Recipe(v1_partitioned_delete, ("p = 'p0'", "id > 4", "p > 'p0' AND id < 6")),
    Recipe(v1_manifests_in_snapshot, ("s = 's3'",), history=True),
    Recipe(history, _ROWS, history=True),
    Recipe(plain_locations, _ROWS, catalog=PLAIN_LOCATIONS),
    Recipe(empty, ("id > 3",)),
    Recipe(emptied, ("id > 3",)),
    Recipe(gzip_metadata, _ROWS, catalog=PLAIN_LOCATIONS),
    Recipe(parquet_codecs, ("id = 4",)),
    Recipe(metrics_modes, ("nothing = 'text 3'", "counted IS NULL", "cut = 'text 4'", "whole > 'text 3'")),
    Recipe(required_and_sorted, ("id = 3", "o IS NOT NULL", "s > 's2'")),
    Recipe(not_a_number, ("d = 0.0", "d < 1", "f = 7", "d IS NULL")),
    Recipe(statistics_file, ("p = 'p1'",)),
    Recipe(cut_bounds, ("id = 1", "s > 'b'", "s = 'cccccccccccccccc'", "b IS NOT NULL")),
)
