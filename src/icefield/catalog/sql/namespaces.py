"""Namespaces of the SQL catalog: rows of properties, and the namespaces that tables imply.

A namespace created here always has the row `exists = true`, as in Iceberg's JDBC catalog. PyIceberg writes that row
only for a namespace without properties, so any row makes a namespace exist, and the reserved one is hidden from
readers.
"""

from collections.abc import Mapping, Sequence

from icefield.catalog.catalog import EXISTS_PROPERTY, find_children
from icefield.catalog.sql.database import Session
from icefield.errors import AlreadyExists, CommitConflict, NamespaceNotEmpty, NoSuchNamespace
from icefield.model.names import Namespace

_ALL = (
    "SELECT namespace FROM iceberg_namespace_properties WHERE catalog_name = ? "
    "UNION SELECT table_namespace FROM iceberg_tables WHERE catalog_name = ?"
)
_AT = (
    "SELECT namespace FROM iceberg_namespace_properties WHERE catalog_name = ? AND namespace = ? "
    "UNION SELECT table_namespace FROM iceberg_tables WHERE catalog_name = ? AND table_namespace = ?"
)
_BELOW = (
    "SELECT namespace FROM iceberg_namespace_properties WHERE catalog_name = ? AND substr(namespace, 1, ?) = ? "
    "UNION SELECT table_namespace FROM iceberg_tables WHERE catalog_name = ? AND substr(table_namespace, 1, ?) = ?"
)
_TABLES_AT = "SELECT table_name FROM iceberg_tables WHERE catalog_name = ? AND table_namespace = ?"
_PROPERTIES = (
    "SELECT property_key, property_value FROM iceberg_namespace_properties WHERE catalog_name = ? AND namespace = ?"
)
_SET = (
    "INSERT INTO iceberg_namespace_properties (catalog_name, namespace, property_key, property_value) "
    "VALUES (?, ?, ?, ?) "
    "ON CONFLICT (catalog_name, namespace, property_key) DO UPDATE SET property_value = excluded.property_value"
)
_REMOVE = "DELETE FROM iceberg_namespace_properties WHERE catalog_name = ? AND namespace = ? AND property_key = ?"
_DROP = "DELETE FROM iceberg_namespace_properties WHERE catalog_name = ? AND namespace = ?"


def text_of(namespace: Namespace) -> str:
    """Return a namespace as it is written in the shared tables."""
    return ".".join(namespace)


class SqlNamespaces:
    """The namespaces of one catalog name, each call inside a transaction of the caller."""

    def __init__(self, catalog_name: str) -> None:
        self._catalog_name = catalog_name

    def require(self, session: Session, namespace: Namespace) -> None:
        """Raise NoSuchNamespace unless it exists."""
        if not self._exists(session, namespace):
            raise NoSuchNamespace(f"there is no namespace {text_of(namespace)}")

    def children(self, session: Session, parent: Namespace) -> list[Namespace]:
        """Return the namespaces one level below the parent; () is the top."""
        if parent:
            self.require(session, parent)
        rows = session.execute(_ALL, (self._catalog_name, self._catalog_name))
        return find_children(parent, (tuple(str(text).split(".")) for (text,) in rows.values if text))

    def create(self, session: Session, namespace: Namespace, properties: Mapping[str, str]) -> None:
        """Create a namespace with its properties."""
        if self._exists(session, namespace):
            raise AlreadyExists(f"namespace {text_of(namespace)} already exists")
        self._set(session, namespace, properties)

    def drop(self, session: Session, namespace: Namespace) -> None:
        """Drop an empty namespace."""
        self.require(session, namespace)
        tables = session.execute(_TABLES_AT, (self._catalog_name, text_of(namespace))).values
        if tables or self._below(session, namespace):
            raise NamespaceNotEmpty(
                f"namespace {text_of(namespace)} is not empty: it still has tables, views or namespaces"
            )
        if session.execute(_DROP, (self._catalog_name, text_of(namespace))).changed < 1:
            raise CommitConflict(f"namespace {text_of(namespace)} was changed while it was being dropped")

    def properties(self, session: Session, namespace: Namespace) -> dict[str, str]:
        """Return the properties, without the reserved one."""
        self.require(session, namespace)
        rows = session.execute(_PROPERTIES, (self._catalog_name, text_of(namespace)))
        return {str(key): str(value or "") for key, value in rows.values if key != EXISTS_PROPERTY}

    def update(
        self, session: Session, namespace: Namespace, removals: Sequence[str], updates: Mapping[str, str]
    ) -> None:
        """Remove and set properties."""
        self.require(session, namespace)
        for key in removals:
            session.execute(_REMOVE, (self._catalog_name, text_of(namespace), key))
        # Also writes the reserved row, or a namespace that PyIceberg created would end with its last property.
        self._set(session, namespace, updates)

    def _set(self, session: Session, namespace: Namespace, properties: Mapping[str, str]) -> None:
        for key, value in sorted({**properties, EXISTS_PROPERTY: "true"}.items()):
            if session.execute(_SET, (self._catalog_name, text_of(namespace), key, value)).changed != 1:
                raise CommitConflict(f"namespace {text_of(namespace)} was changed while {key} was being set")

    def _exists(self, session: Session, namespace: Namespace) -> bool:
        if not namespace:
            return False
        at = (self._catalog_name, text_of(namespace))
        return bool(session.execute(_AT, at * 2).values) or self._below(session, namespace)

    def _below(self, session: Session, namespace: Namespace) -> bool:
        prefix = text_of(namespace) + "."
        return bool(session.execute(_BELOW, (self._catalog_name, len(prefix), prefix) * 2).values)
