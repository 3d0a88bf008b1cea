"""Views of a REST catalog: load them, and commit changes to them. The server writes the metadata.

(rest-catalog-open-api.yaml: loadView, createView, replaceView.) In the protocol a change of a view can require only the
view's uuid: of two concurrent replacements the later one wins.

Raises NotFound, AlreadyExists, Unsupported (the server has no views), CommitStateUnknown, CatalogError.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import msgspec

from icefield.catalog.rest.http import Answer, Request
from icefield.catalog.rest.session import REGISTER_VIEW, VIEWS, RestSession, decode_answer
from icefield.codec.json.keys import Json
from icefield.codec.json.schema import encode_schema
from icefield.codec.json.view import decode_view, encode_view_version
from icefield.codec.json.view_updates import encode_view_update
from icefield.errors import NoSuchNamespace, NotFound, Unsupported
from icefield.model.names import TableName
from icefield.model.view import ViewMetadata
from icefield.model.view_updates import ViewUpdate


@dataclass(frozen=True)
class LoadedView:
    """A view as the server returns it, and the location of its metadata file."""

    location: str
    metadata: ViewMetadata


class RestViews:
    """The views of one REST catalog."""

    def __init__(self, session: RestSession) -> None:
        self._session = session

    @property
    def are_there(self) -> bool:
        """Whether the server supports views."""
        return self._session.supports(VIEWS)

    def load(self, view: TableName) -> LoadedView:
        """Load a view."""
        if not self.are_there:
            raise NotFound(f"there is no view {view}: the catalog has none")
        doing = f"load view {view}"
        return _decode(self._session.read_metadata(self._session.view_path(view), doing, NotFound), doing)

    def create(self, view: TableName, location: str | None, metadata: ViewMetadata) -> LoadedView:
        """Create a view; without a location, the server chooses one."""
        self._require()
        doing = f"create view {view}"
        body: Json = {
            "name": view.name,
            "schema": encode_schema(metadata.schema),
            "view-version": encode_view_version(metadata.current_version),
            "properties": dict(metadata.properties),
        }
        if location is not None:
            body["location"] = location
        url = self._session.namespace_path(view.namespace, "views")
        return _decode(self._session.change(Request("POST", url, body=body), doing, NoSuchNamespace), doing)

    def commit(self, view: TableName, view_uuid: UUID, updates: Sequence[ViewUpdate]) -> LoadedView:
        """Commit a change of a view."""
        self._require()
        doing = f"commit to {view}"
        body = {
            "identifier": {"namespace": list(view.namespace), "name": view.name},
            "requirements": [{"type": "assert-view-uuid", "uuid": str(view_uuid)}],
            "updates": [encode_view_update(update) for update in updates],
        }
        return _decode(self._session.commit(Request("POST", self._session.view_path(view), body=body), doing), doing)

    def register(self, view: TableName, location: str) -> None:
        """Register an existing view in the catalog."""
        if not self._session.supports(REGISTER_VIEW):
            raise Unsupported("this REST catalog cannot register views")
        url = self._session.namespace_path(view.namespace, "register-view")
        body = {"name": view.name, "metadata-location": location}
        self._session.change(Request("POST", url, body=body), f"register view {view}", NoSuchNamespace)

    def drop(self, view: TableName) -> None:
        """Remove a view from the catalog."""
        self._session.change(Request("DELETE", self._session.view_path(view)), f"drop view {view}")

    def _require(self) -> None:
        if not self.are_there:
            raise Unsupported("this REST catalog has no views")


def _decode(answer: Answer, doing: str) -> LoadedView:
    loaded = decode_answer(answer.body, _Loaded, doing)
    return LoadedView(loaded.metadata_location, decode_view(bytes(loaded.metadata), loaded.metadata_location))


class _Loaded(msgspec.Struct, rename="kebab"):
    metadata: msgspec.Raw
    metadata_location: str
    config: dict[str, Any] | None = None
