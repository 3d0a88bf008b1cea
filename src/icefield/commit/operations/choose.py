"""Choose the operations that a catalog needs."""

from __future__ import annotations

from icefield.deferred import deferred_imports

with deferred_imports(__name__):
    from icefield.backend import Backend
    from icefield.commit.operations.rest import RestTableOperations
    from icefield.commit.operations.tables import PointerTableOperations, TableOperations
    from icefield.commit.operations.views import PointerViewOperations, RestViewOperations, ViewOperations


def operations_of(backend: Backend) -> TableOperations:
    """Return the operations that load and commit tables of a catalog."""
    server = backend.catalog.metadata_server
    return PointerTableOperations(backend) if server is None else RestTableOperations(server, backend.ambient)


def view_operations_of(backend: Backend) -> ViewOperations:
    """Return the operations that load and commit views of a catalog."""
    server = backend.catalog.metadata_server
    return PointerViewOperations(backend) if server is None else RestViewOperations(server, backend.ambient)
