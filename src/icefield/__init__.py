"""Apache Iceberg tables in Python: Spark for large work, Arrow for small work, no jars.

    lake = icefield.connect("lake/")
    orders = lake.table("shop.orders")
    orders.scan(where="amount > 10").to_arrow()

Names are imported on first use, so that a Spark worker loads only the modules that it needs.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    __version__: str

    from icefield.commit.validate.idempotency_key import StreamBatch
    from icefield.compaction.compact import CompactionProgress
    from icefield.compaction.delete_plan import DeletePlan
    from icefield.compaction.delete_result import DeleteRewriteResult
    from icefield.compaction.plan import CompactionPlan
    from icefield.compaction.result import CompactionResult
    from icefield.config.connect import connect
    from icefield.dml.evolution import TableEvolution
    from icefield.dml.result import ChangeResult
    from icefield.engine.rows import register
    from icefield.errors import (
        AlreadyExists,
        CatalogError,
        CheckFailed,
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
        LeaseLost,
        LocationRefused,
        MissingFile,
        NamespaceNotEmpty,
        NeedsSpark,
        NoSuchNamespace,
        NoSuchSnapshot,
        NoSuchTable,
        NotFound,
        RowsMoved,
        SchemaMismatch,
        SourceLost,
        StorageError,
        Unsupported,
        WorkerLost,
    )
    from icefield.expr.parse.builder import col, lit
    from icefield.forget.result import ForgetResult
    from icefield.lake import Lake
    from icefield.metrics import CommitReport, ScanReport
    from icefield.model.snapshot import Snapshot
    from icefield.table.changes import AppendScan
    from icefield.table.inspection import TableInspection
    from icefield.table.merge import MergeBuilder
    from icefield.table.scan import TableScan
    from icefield.table.table import Table
    from icefield.table.transaction import Transaction
    from icefield.types.schema import Schema
    from icefield.view import View

__all__ = [
    "AlreadyExists",
    "AppendScan",
    "CatalogError",
    "ChangeResult",
    "CheckFailed",
    "CommitConflict",
    "CommitError",
    "CommitReport",
    "CommitStateUnknown",
    "CompactionPlan",
    "CompactionProgress",
    "CompactionResult",
    "ConcurrentChange",
    "CorruptFile",
    "DeletePlan",
    "DeleteRewriteResult",
    "FileAlreadyExists",
    "ForgetResult",
    "IcefieldError",
    "IcefieldWarning",
    "InvalidFilter",
    "InvalidInput",
    "Lake",
    "LeaseLost",
    "LocationRefused",
    "MergeBuilder",
    "MissingFile",
    "NamespaceNotEmpty",
    "NeedsSpark",
    "NoSuchNamespace",
    "NoSuchSnapshot",
    "NoSuchTable",
    "NotFound",
    "RowsMoved",
    "ScanReport",
    "Schema",
    "SchemaMismatch",
    "Snapshot",
    "SourceLost",
    "StorageError",
    "StreamBatch",
    "Table",
    "TableEvolution",
    "TableInspection",
    "TableScan",
    "Transaction",
    "Unsupported",
    "View",
    "WorkerLost",
    "col",
    "connect",
    "lit",
    "register",
]

_ROOMS = {
    "AppendScan": "icefield.table.changes",
    "ChangeResult": "icefield.dml.result",
    "CommitReport": "icefield.metrics",
    "CompactionPlan": "icefield.compaction.plan",
    "CompactionProgress": "icefield.compaction.compact",
    "CompactionResult": "icefield.compaction.result",
    "DeletePlan": "icefield.compaction.delete_plan",
    "DeleteRewriteResult": "icefield.compaction.delete_result",
    "ForgetResult": "icefield.forget.result",
    "Lake": "icefield.lake",
    "MergeBuilder": "icefield.table.merge",
    "ScanReport": "icefield.metrics",
    "Schema": "icefield.types.schema",
    "Snapshot": "icefield.model.snapshot",
    "StreamBatch": "icefield.commit.validate.idempotency_key",
    "Table": "icefield.table.table",
    "TableEvolution": "icefield.dml.evolution",
    "TableInspection": "icefield.table.inspection",
    "TableScan": "icefield.table.scan",
    "Transaction": "icefield.table.transaction",
    "View": "icefield.view",
    "col": "icefield.expr.parse.builder",
    "connect": "icefield.config.connect",
    "lit": "icefield.expr.parse.builder",
    "load_ipython_extension": "icefield.notebook",
    "register": "icefield.engine.rows",
}


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return import_module("importlib.metadata").version("icefield")
    if name not in __all__ and name != "load_ipython_extension":
        raise AttributeError(f"module 'icefield' has no attribute {name!r}")
    return getattr(import_module(_ROOMS.get(name, "icefield.errors")), name)
