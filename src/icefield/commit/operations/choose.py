"""Choose the operations that a catalog needs."""

from icefield.backend import Backend
from icefield.commit.operations.rest import RestTableOperations
from icefield.commit.operations.tables import PointerTableOperations, TableOperations
from icefield.commit.operations.views import PointerViewOperations, RestViewOperations, ViewOperations


def operations_of(backend: Backend) -> TableOperations:
    """Return what loads the tables of a catalog and commits to them."""
    server = backend.catalog.metadata_server
    return PointerTableOperations(backend) if server is None else RestTableOperations(server, backend.ambient)


def view_operations_of(backend: Backend) -> ViewOperations:
    """Return what loads the views of a catalog and commits to them."""
    server = backend.catalog.metadata_server
    return PointerViewOperations(backend) if server is None else RestViewOperations(server, backend.ambient)
