"""Apache Iceberg tables in Python: Spark for large work, Arrow for small work, no jars.

    lake = icefield.connect("lake/")
    orders = lake.table("shop.orders")
    orders.scan(where="amount > 10").to_arrow()

Names are imported on first use, so that a Spark worker loads only the modules that it needs.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from icefield.commit.token import StreamBatch
    from icefield.connection import connect
    from icefield.errors import (
        AlreadyExists,
        CatalogError,
        CommitConflict,
        CommitError,
        CommitStateUnknown,
        ConcurrentChange,
        CorruptFile,
        FileAlreadyExists,
        IcefieldError,
        IcefieldWarning,
        InvalidFilter,
        InvalidInput,
        LocationRefused,
        MissingFile,
        NamespaceNotEmpty,
        NoSuchNamespace,
        NoSuchSnapshot,
        NoSuchTable,
        NotFound,
        SchemaMismatch,
        StorageError,
        Unsupported,
    )
    from icefield.expr.builder import col
    from icefield.lake import Lake
    from icefield.spark.data_source import register
    from icefield.table import Table
    from icefield.table_scan import TableScan

__all__ = [
    "AlreadyExists",
    "CatalogError",
    "CommitConflict",
    "CommitError",
    "CommitStateUnknown",
    "ConcurrentChange",
    "CorruptFile",
    "FileAlreadyExists",
    "IcefieldError",
    "IcefieldWarning",
    "InvalidFilter",
    "InvalidInput",
    "Lake",
    "LocationRefused",
    "MissingFile",
    "NamespaceNotEmpty",
    "NoSuchNamespace",
    "NoSuchSnapshot",
    "NoSuchTable",
    "NotFound",
    "SchemaMismatch",
    "StorageError",
    "StreamBatch",
    "Table",
    "TableScan",
    "Unsupported",
    "col",
    "connect",
    "register",
]

_ROOMS = {
    "Lake": "icefield.lake",
    "StreamBatch": "icefield.commit.token",
    "Table": "icefield.table",
    "TableScan": "icefield.table_scan",
    "col": "icefield.expr.builder",
    "connect": "icefield.connection",
    "register": "icefield.spark.data_source",
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'icefield' has no attribute {name!r}")
    return getattr(import_module(_ROOMS.get(name, "icefield.errors")), name)
