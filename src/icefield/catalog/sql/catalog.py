"""A catalog in the two tables of Iceberg's JDBC catalog and PyIceberg's SqlCatalog, which may use it at the same time.

There are two versions of `iceberg_tables`: V0 without and V1 with the column iceberg_type ('TABLE', 'VIEW' or null,
where null means a table). Another client may add the column at any time, so the version is never cached: rows are read
with `SELECT *`, and their columns are checked in the same transaction that writes.

Fences are rows of `iceberg_namespace_properties` under a catalog name of their own, where the namespace is the id of a
write, so that no other client needs another schema. `fence` writes a fence and then the row of the table, and `swap`
reads the fences after it has written the row of the table: one of two concurrent transactions sees the other.

Namespaces are compared as a whole or by `substr`, never by LIKE, which ignores case in SQLite and takes `_` for any
character. See `catalog` for the contract and `database` for the requirements of the database.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NoReturn

from icefield.catalog.catalog import (
    Entry,
    Kind,
    PointerSwap,
    check_changes,
    check_new_namespace,
    check_new_table,
    check_pointer,
    check_properties,
    refuse_fenced,
    refuse_taken,
    require_kind,
    write_ids_of,
)
from icefield.catalog.sql.database import Database, Rows, Session, Value
from icefield.catalog.sql.namespaces import SqlNamespaces, text_of
from icefield.errors import CatalogError, CommitConflict, Unsupported
from icefield.model.names import Namespace, TableName

# The names, types and keys are those of Iceberg's JdbcUtil (V1) and of PyIceberg.
SCHEMA: Mapping[str, str] = {
    "iceberg_tables": (
        "CREATE TABLE IF NOT EXISTS iceberg_tables ("
        "catalog_name VARCHAR(255) NOT NULL, table_namespace VARCHAR(255) NOT NULL, table_name VARCHAR(255) NOT NULL, "
        "metadata_location VARCHAR(1000), previous_metadata_location VARCHAR(1000), iceberg_type VARCHAR(5), "
        "PRIMARY KEY (catalog_name, table_namespace, table_name))"
    ),
    "iceberg_namespace_properties": (
        "CREATE TABLE IF NOT EXISTS iceberg_namespace_properties ("
        "catalog_name VARCHAR(255) NOT NULL, namespace VARCHAR(255) NOT NULL, property_key VARCHAR(255) NOT NULL, "
        "property_value VARCHAR(1000) NOT NULL, PRIMARY KEY (catalog_name, namespace, property_key))"
    ),
}

_TYPE_COLUMN = "iceberg_type"
_LONGEST_NAME = 255
_READ_COLUMNS = ("table_name", "metadata_location")
_TYPES = {Kind.TABLE: "TABLE", Kind.VIEW: "VIEW"}
_SELECT = "SELECT * FROM iceberg_tables WHERE catalog_name = ? AND table_namespace = ? AND table_name = ?"
_LIST = "SELECT * FROM iceberg_tables WHERE catalog_name = ? AND table_namespace = ?"
_LIST_ALL = "SELECT * FROM iceberg_tables WHERE catalog_name = ?"
_POINTS_AT = "SELECT metadata_location FROM iceberg_tables WHERE metadata_location = ?"
_INSERT_V0 = (
    "INSERT INTO iceberg_tables (catalog_name, table_namespace, table_name, metadata_location) VALUES (?, ?, ?, ?) "
    "ON CONFLICT DO NOTHING"
)
_INSERT_V1 = (
    "INSERT INTO iceberg_tables (catalog_name, table_namespace, table_name, metadata_location, iceberg_type) "
    "VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING"
)
_UPDATE = (
    "UPDATE iceberg_tables SET metadata_location = ?, previous_metadata_location = ? "
    "WHERE catalog_name = ? AND table_namespace = ? AND table_name = ? AND metadata_location = ?"
)
_DELETE = (
    "DELETE FROM iceberg_tables "
    "WHERE catalog_name = ? AND table_namespace = ? AND table_name = ? AND metadata_location = ?"
)
# Changes nothing, but makes concurrent swaps of the table wait, and fail where transactions are serializable.
_TOUCH = (
    "UPDATE iceberg_tables SET metadata_location = metadata_location "
    "WHERE catalog_name = ? AND table_namespace = ? AND table_name = ?"
)
_FENCE = (
    "INSERT INTO iceberg_namespace_properties (catalog_name, namespace, property_key, property_value) "
    "VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING"
)
_FENCED = (
    "SELECT namespace FROM iceberg_namespace_properties WHERE catalog_name = ? AND namespace = ? AND property_key = ?"
)
_RENAME = (
    "UPDATE iceberg_tables SET table_namespace = ?, table_name = ? "
    "WHERE catalog_name = ? AND table_namespace = ? AND table_name = ?"
)


class SqlCatalog:
    """Tables, views and namespaces of one catalog name in a shared database."""

    swaps_many = True

    def __init__(self, database: Database, name: str) -> None:
        self.name = name
        self._database = database
        self._namespaces = SqlNamespaces(name)

    @property
    def identity(self) -> str:
        return self._database.identity

    @property
    def metadata_server(self) -> None:
        return None

    def swap(self, changes: Sequence[PointerSwap]) -> None:
        check_changes(changes)
        if changes:
            self._database.write(lambda session: self._swap(session, changes))

    def fence(self, table: TableName, write_ids: Sequence[str]) -> bool:
        self._database.write(lambda session: self._fence(session, table, sorted(set(write_ids))))
        return True

    def pointer(self, table: TableName, kind: Kind = Kind.TABLE) -> str:
        return require_kind(table, kind, self.find(table))

    def find(self, name: TableName) -> Entry | None:
        return self._database.read(lambda session: self._entry(name, self._select(session, name)))

    def pointers(self, tables: Iterable[TableName]) -> dict[TableName, str]:
        names = list(tables)

        def work(session: Session) -> dict[TableName, str]:
            found = ((table, self._entry(table, self._select(session, table))) for table in names)
            return {table: entry.pointer for table, entry in found if entry and entry.kind is Kind.TABLE}

        return self._database.read(work)

    def entries(self) -> dict[TableName, Entry]:
        return self._database.read(self._entries)

    def pointed_at(self, locations: Iterable[str]) -> set[str]:
        # In every catalog of the database: the file matters, not the catalog's name.
        wanted = list(locations)

        def work(session: Session) -> set[str]:
            return {at for at in wanted if session.execute(_POINTS_AT, (at,)).values}

        return self._database.read(work)

    def list_tables(self, namespace: Namespace) -> list[TableName]:
        return self._database.read(lambda session: self._list(session, namespace, Kind.TABLE))

    def list_views(self, namespace: Namespace) -> list[TableName]:
        return self._database.read(lambda session: self._list(session, namespace, Kind.VIEW))

    def rename_table(self, old: TableName, new: TableName) -> None:
        check_new_table(new)
        self._database.write(lambda session: self._rename(session, old, new, Kind.TABLE))

    def rename_view(self, old: TableName, new: TableName) -> None:
        check_new_table(new)
        self._database.write(lambda session: self._rename(session, old, new, Kind.VIEW))

    def list_namespaces(self, parent: Namespace | None = None) -> list[Namespace]:
        return self._database.read(lambda session: self._namespaces.children(session, parent or ()))

    def create_namespace(self, namespace: Namespace, properties: Mapping[str, str] | None = None) -> None:
        check_new_namespace(namespace, properties or {})
        self._database.write(lambda session: self._namespaces.create(session, namespace, properties or {}))

    def drop_namespace(self, namespace: Namespace) -> None:
        self._database.write(lambda session: self._namespaces.drop(session, namespace))

    def namespace_properties(self, namespace: Namespace) -> dict[str, str]:
        return self._database.read(lambda session: self._namespaces.properties(session, namespace))

    def update_namespace_properties(
        self, namespace: Namespace, removals: Iterable[str], updates: Mapping[str, str]
    ) -> None:
        removed = sorted(set(removals))
        check_properties(removed, updates)
        self._database.write(lambda session: self._namespaces.update(session, namespace, removed, updates))

    def close(self) -> None:
        self._database.close()

    def __reduce__(self) -> NoReturn:
        raise Unsupported("a catalog cannot be pickled: it holds connections", hint="Open it there")

    def _swap(self, session: Session, changes: Sequence[PointerSwap]) -> None:
        # All expected pointers are checked before anything is written, so that they are checked against one state.
        found = [self._select(session, change.table) for change in changes]
        for change, rows in zip(changes, found, strict=True):
            self._check(session, change, rows)
        guards = [change.guard for change in changes if change.guard is not None]
        entries = self._entries(session) if guards else {}
        for guard in guards:
            guard(entries)
        # Rows are locked in the order of their names, so that two swaps cannot deadlock.
        for change, rows in sorted(zip(changes, found, strict=True), key=lambda pair: pair[0].table):
            self._move(session, change, typed=_TYPE_COLUMN in rows.columns)
        refuse_fenced(each for each in write_ids_of(changes) if self._is_fenced(session, each))

    def _fence(self, session: Session, table: TableName, write_ids: Sequence[str]) -> None:
        for write_id in write_ids:
            session.execute(_FENCE, (*self._fence_key(write_id), "true"))
        session.execute(_TOUCH, self._key(table))

    def _is_fenced(self, session: Session, write_id: str) -> bool:
        return bool(session.execute(_FENCED, self._fence_key(write_id)).values)

    def _fence_key(self, write_id: str) -> tuple[str, str, str]:
        return f"icefield-fences:{self.name}"[:_LONGEST_NAME], write_id, "fenced"

    def _check(self, session: Session, change: PointerSwap, rows: Rows) -> None:
        check_pointer(change, self._entry(change.table, rows))
        if change.expected is None:
            self._namespaces.require(session, change.table.namespace)
            if change.kind is Kind.VIEW and _TYPE_COLUMN not in rows.columns:
                raise Unsupported(
                    f"cannot create view {change.table}: catalog {self.name} lacks the column {_TYPE_COLUMN}",
                    hint="Open it with Iceberg's JDBC catalog and jdbc.schema-version=V1 once, which adds the column",
                )

    def _move(self, session: Session, change: PointerSwap, *, typed: bool) -> None:
        key = self._key(change.table)
        if change.expected is None:
            kind = (_TYPES[change.kind],) if typed else ()
            rows = session.execute(_INSERT_V1 if typed else _INSERT_V0, (*key, change.new, *kind))
        elif change.new is None:
            rows = session.execute(_DELETE, (*key, change.expected))
        elif change.new != change.expected:
            rows = session.execute(_UPDATE, (change.new, change.expected, *key, change.expected))
        else:
            return
        # Required: an update that matched no row is a commit that did not happen.
        if rows.changed != 1:
            raise CommitConflict(f"{change.table} was changed while {change.new} was being committed")

    def _list(self, session: Session, namespace: Namespace, kind: Kind) -> list[TableName]:
        self._namespaces.require(session, namespace)
        rows = _by_column(session.execute(_LIST, (self.name, text_of(namespace))))
        return sorted(TableName(namespace, str(row["table_name"])) for row in rows if _kind(row) is kind)

    def _entries(self, session: Session) -> dict[TableName, Entry]:
        rows = _by_column(session.execute(_LIST_ALL, (self.name,)))
        return {
            TableName(tuple(str(row["table_namespace"]).split(".")), str(row["table_name"])): Entry(
                _kind(row), str(row["metadata_location"])
            )
            for row in rows
            if row["metadata_location"]
        }

    def _rename(self, session: Session, old: TableName, new: TableName, kind: Kind) -> None:
        require_kind(old, kind, self._entry(old, self._select(session, old)))
        if old == new:
            return
        self._namespaces.require(session, new.namespace)
        refuse_taken(new, self._entry(new, self._select(session, new)))
        if session.execute(_RENAME, (text_of(new.namespace), new.name, *self._key(old))).changed != 1:
            raise CommitConflict(f"{old} was changed while it was being renamed")

    def _select(self, session: Session, table: TableName) -> Rows:
        return session.execute(_SELECT, self._key(table))

    def _key(self, table: TableName) -> tuple[str, str, str]:
        return self.name, text_of(table.namespace), table.name

    def _entry(self, name: TableName, rows: Rows) -> Entry | None:
        """Return the entry of a name's row, or None if there is no row."""
        for row in _by_column(rows):
            location = row["metadata_location"]
            if not location:
                raise CatalogError(f"{name} has no metadata location in catalog {self.name}")
            return Entry(_kind(row), str(location))
        return None


def _by_column(rows: Rows) -> list[dict[str, Value]]:
    if missing := [column for column in _READ_COLUMNS if column not in rows.columns]:
        raise CatalogError(f"the table iceberg_tables has no column {', '.join(missing)}")
    return [dict(zip(rows.columns, values, strict=True)) for values in rows.values]


def _kind(row: Mapping[str, Value]) -> Kind:
    # A row without a type is a table, from before views existed.
    return Kind.TABLE if row.get(_TYPE_COLUMN) in (None, _TYPES[Kind.TABLE]) else Kind.VIEW
