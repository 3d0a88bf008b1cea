"""Which publisher a catalog needs."""

from icefield.ambient import Ambient
from icefield.catalog.catalog import Catalog
from icefield.catalog.rest.catalog import RestCatalog
from icefield.commit.operations.rest import RestTableOperations
from icefield.commit.operations.tables import PointerTableOperations, TableOperations
from icefield.storage.store import Store


def operations_of(catalog: Catalog, store: Store, ambient: Ambient) -> TableOperations:
    """Return what loads and publishes the tables of a catalog."""
    if isinstance(catalog, RestCatalog):
        return RestTableOperations(catalog, ambient)
    return PointerTableOperations(catalog, store, ambient)
