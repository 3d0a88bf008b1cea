"""Which publisher a catalog needs."""

from icefield.ambient import Ambient
from icefield.catalog.catalog import Catalog
from icefield.catalog.rest.catalog import RestCatalog
from icefield.commit.publish.publish import PointerPublisher, Publisher
from icefield.commit.publish.rest import RestPublisher
from icefield.storage.store import Store


def publisher_of(catalog: Catalog, store: Store, ambient: Ambient) -> Publisher:
    """Return what loads and publishes the tables of a catalog."""
    if isinstance(catalog, RestCatalog):
        return RestPublisher(catalog, ambient)
    return PointerPublisher(catalog, store, ambient)
