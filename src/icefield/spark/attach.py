"""Tables of a lake as tables of Spark's own catalog, for plain `spark.sql` and `spark.table`: reads and appends.

    lake.attach(spark, "shop")         CREATE DATABASE shop; CREATE TABLE shop.orders USING icefield_orders_5f1c…
    spark.sql("SELECT … FROM shop.orders")

Spark's catalog does not tell a Python source which table is read, so each table has a source class of its own, which is
registered in the session. Such a source never accepts filters: Spark gives those of one mention of a table to all
others of the statement, which then lack rows. So every query reads all files, through Python workers.
"""

import re
from typing import ClassVar
from zlib import crc32

from pyspark.sql import SparkSession
from pyspark.sql import types as spark_types
from pyspark.sql.datasource import DataSourceReader, DataSourceWriter

from icefield.errors import AlreadyExists, NoSuchNamespace, Unsupported
from icefield.lake import Lake
from icefield.spark.data_source.data_source import IcefieldSource
from icefield.spark.data_source.options import SourceOptions
from icefield.spark.data_source.read import SourceReader
from icefield.spark.session.session import active_in_jvm
from icefield.storage.store import check_reachable
from icefield.table.lake_sql import Attached

PREFIX = "icefield_"
_MARK = "icefield.attached"
# What Spark's catalog takes as a name of a database or table.
_NAME = re.compile(r"\w+", re.ASCII)
_PROVIDER = re.compile(r"^Provider: (\S+)$", re.MULTILINE)


class AttachedSource(IcefieldSource):
    """One table of a lake; its options are those of the class, not those that Spark's catalog adds."""

    source_name: ClassVar[str] = ""
    table: ClassVar[str] = ""

    @classmethod
    def name(cls) -> str:
        """The name of the format."""
        return cls.source_name

    def reader(self, schema: spark_types.StructType) -> DataSourceReader:
        """Return a reader of all files, whatever the query filters."""
        return SourceReader(self._open(), schema, None, self._load_newest)

    def writer(self, schema: spark_types.StructType, overwrite: bool) -> DataSourceWriter:  # noqa: FBT001 - Spark's
        """Return a writer that appends rows."""
        if overwrite:
            raise Unsupported(
                f"INSERT OVERWRITE of {self.table} through Spark's catalog", hint="Use lake.sql, or INSERT INTO"
            )
        return super().writer(schema, overwrite)

    def _options(self, known: tuple[str, ...]) -> SourceOptions:
        return SourceOptions({"table": self.table}, type(self).default_lake)


def attach_tables(spark: SparkSession, lake: Lake, namespace: str | None) -> Attached:
    """Make an entry in Spark's catalog for each table, new ones in place of those of an earlier call."""
    _check_session(spark, lake)
    tables, skipped = _choose(lake, namespace)
    detach_tables(spark, lake, namespace)
    databases = dict.fromkeys(name.partition(".")[0].lower() for name in tables)
    others = {name: entry for database in databases for name, entry in _entries(spark, database).items()}
    for name in tables:
        if name.lower() in others:
            _refuse(name, others[name.lower()])
    for name in tables:
        _attach(spark, lake, name)
    return Attached(tuple(tables), skipped)


def detach_tables(spark: SparkSession, lake: Lake, namespace: str | None) -> list[str]:
    """Drop the entries of this lake from Spark's catalog; return their names."""
    detached = []
    for database in {name.lower() for name in (lake.namespaces() if namespace is None else [namespace])}:
        entries = _entries(spark, database)
        ours = [name for name, provider in entries.items() if provider == _source_name(lake, name)]
        for name in ours:
            spark.sql(f"DROP TABLE {_quoted(name)}")
        if ours and len(ours) == len(entries) and _is_our_database(spark, database):
            spark.sql(f"DROP DATABASE {_quoted(database)}")
        detached.extend(ours)
    return sorted(detached)


def _check_session(spark: SparkSession, lake: Lake) -> None:
    check_reachable(lake.store)
    if spark.conf.get("spark.sql.catalogImplementation", "in-memory") != "in-memory":
        raise Unsupported(
            "cannot attach tables in a session with a metastore: others would see entries that they cannot read",
            hint="Use lake.sql, or lake.read(...).createOrReplaceTempView(...)",
        )


def _choose(lake: Lake, namespace: str | None) -> tuple[list[str], dict[str, str]]:
    """Return the tables that Spark's catalog can have, and why it cannot have the others, in lower case as it does."""
    names = lake.tables(namespace)
    if namespace is not None and not names and namespace not in lake.namespaces():
        raise NoSuchNamespace(f"no namespace {namespace} in the lake")
    chosen: dict[str, str] = {}
    skipped = dict.fromkeys(lake.views(namespace), "a view: read it with lake.sql")
    for name in sorted(names, key=lambda name: (name != name.lower(), name)):
        parts = name.split(".")
        if len(parts) != 2 or not all(_NAME.fullmatch(part) for part in parts):
            skipped[name] = "Spark's catalog takes names such as shop.orders only"
        elif name.lower() in chosen:
            skipped[name] = f"Spark's catalog does not tell it from {chosen[name.lower()]}"
        else:
            chosen[name.lower()] = name
    return list(chosen.values()), skipped


def _attach(spark: SparkSession, lake: Lake, name: str) -> None:
    source_name = _source_name(lake, name.lower())
    values = {"default_lake": lake.opener, "table": name, "source_name": source_name}
    # A class created here, which Spark pickles by value, is the only way to tell a source which table it is.
    source = type(AttachedSource.__name__, (AttachedSource,), values)
    with active_in_jvm(spark):
        spark.dataSource.register(source)
    database = name.partition(".")[0]
    spark.sql(f"CREATE DATABASE IF NOT EXISTS {_quoted(database)} WITH DBPROPERTIES ('{_MARK}' = 'true')")
    spark.sql(f"CREATE TABLE {_quoted(name)} USING {source_name}")


def _refuse(name: str, provider: str) -> None:
    whose = "another lake" if provider.startswith(PREFIX) else f"the format {provider}"
    raise AlreadyExists(
        f"cannot attach {name}: Spark's catalog has a table of that name, of {whose}",
        hint="Detach or drop it first, or read the lake's table with lake.sql",
    )


def _entries(spark: SparkSession, database: str) -> dict[str, str]:
    """Return the tables of a database of Spark's catalog, by name, with their formats."""
    if not spark.catalog.databaseExists(_quoted(database)):
        return {}
    rows = spark.sql(f"SHOW TABLE EXTENDED IN {_quoted(database)} LIKE '*'").collect()
    return {
        f"{database}.{row.tableName}": found[1] if (found := _PROVIDER.search(row.information)) else ""
        for row in rows
        if not row.isTemporary
    }


def _is_our_database(spark: SparkSession, database: str) -> bool:
    described = spark.sql(f"DESCRIBE DATABASE EXTENDED {_quoted(database)}").collect()
    return any(_MARK in str(row.info_value) for row in described)


def _source_name(lake: Lake, name: str) -> str:
    """Return the name of a table's format, which no table of another lake has."""
    place = f"{lake.warehouse}\n{lake.catalog.identity}\n{name}"
    return f"{PREFIX}{name.rpartition('.')[2]}_{crc32(place.encode()):08x}"


def _quoted(name: str) -> str:
    return ".".join(f"`{part}`" for part in ("spark_catalog", *name.split(".")))
