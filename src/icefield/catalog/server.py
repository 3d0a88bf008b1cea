"""A catalog server that writes metadata itself: clients send updates, not pointers."""

from typing import Protocol

from icefield.catalog.rest.tables import RestTables
from icefield.catalog.rest.views import RestViews


class MetadataServer(Protocol):
    """The tables and views of a server, as it loads and changes them."""

    tables: RestTables
    views: RestViews

    @property
    def takes_keys(self) -> bool:
        """Whether the server recognizes a change that is sent twice."""
        ...

    @property
    def wants_reports(self) -> bool:
        """Whether the server accepts commit reports."""
        ...
