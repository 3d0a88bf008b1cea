"""Commit views: by writing metadata files and swapping pointers, or through a REST server.

A view's metadata has no log of files, so an unknown outcome is resolved by its version log: it contains the new
version, or it continues from the base without it. For a server, the contents are compared: it may assign another
version id and time.

Raises AlreadyExists, NotFound, CommitConflict, CommitStateUnknown.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from icefield.ambient import Ambient
from icefield.deferred import deferred_imports
from icefield.errors import CommitStateUnknown, IcefieldError
from icefield.properties.table import METADATA_PATH

with deferred_imports(__name__):
    from icefield.backend import Backend
    from icefield.catalog.catalog import Guard, Kind, PointerSwap
    from icefield.catalog.server import MetadataServer
    from icefield.codec.json.view import decode_view, encode_view
    from icefield.commit.action import WriteContext
    from icefield.commit.attempt import begin_attempt
    from icefield.commit.load import read_metadata_file
    from icefield.commit.operations.tables import next_metadata_name
    from icefield.commit.retry import Outcome, ResolvedSwap, UnknownOutcome, resolve_outcome
    from icefield.commit.validate.ownership import claim_of, guard_of, roots_of
    from icefield.commit.validate.references import remove_quietly
    from icefield.model.names import TableName
    from icefield.model.view import ViewMetadata, says_the_same
    from icefield.model.view_updates import find_view_updates
    from icefield.storage.location import join_location
    from icefield.storage.store import Store


@dataclass(frozen=True)
class LoadedView:
    """A view, and where its metadata is."""

    metadata: ViewMetadata
    location: str


class ViewOperations(Protocol):
    """Loads views and commits their metadata."""

    def load(self, name: TableName, known: LoadedView | None = None) -> LoadedView:
        """Return the newest version, or `known` itself if it still is the newest."""
        ...

    def create(self, name: TableName, location: str | None, metadata: ViewMetadata) -> None:
        """Commit the first version; without a location, at one that the catalog chooses."""
        ...

    def commit(self, name: TableName, base: LoadedView, metadata: ViewMetadata) -> None:
        """Commit the next version."""
        ...


def load_view_metadata(store: Store, location: str) -> ViewMetadata:
    """Read and decode a view's metadata file."""
    return decode_view(read_metadata_file(store, location), location)


@dataclass(frozen=True)
class PointerViewOperations:
    """Commits by writing metadata files and swapping pointers."""

    backend: Backend

    def load(self, name: TableName, known: LoadedView | None = None) -> LoadedView:
        location = self.backend.catalog.pointer(name, Kind.VIEW)
        if known is not None and known.location == location:
            return known
        return LoadedView(load_view_metadata(self.backend.store, location), location)

    def create(self, name: TableName, location: str | None, metadata: ViewMetadata) -> None:
        self._commit(name, metadata, None, lambda change: self.backend.catalog.swap([change]))

    def commit(self, name: TableName, base: LoadedView, metadata: ViewMetadata) -> None:
        def judge(current: str) -> Outcome:
            return _judge(base.metadata, metadata, load_view_metadata(self.backend.store, current))

        self._commit(name, metadata, base, ResolvedSwap(self.backend.catalog, self.backend.ambient, judge).make)

    def _commit(
        self, name: TableName, metadata: ViewMetadata, base: LoadedView | None, swap: Callable[[PointerSwap], None]
    ) -> None:
        guard = self._guard(name, base, metadata)
        previous = None if base is None else base.location
        folder = METADATA_PATH.read(metadata.properties) or join_location(metadata.location, "metadata")
        location = join_location(folder, f"{next_metadata_name(previous, WriteContext.of(self.backend))}.metadata.json")
        attempt = begin_attempt(self.backend.store)
        try:
            attempt.store.put_new(location, encode_view(metadata))
            attempt.is_sent = True
            swap(PointerSwap(name, previous, location, Kind.VIEW, guard))
        except BaseException as error:
            if not attempt.may_have_landed(error):
                remove_quietly(self.backend.store, attempt.written)
            raise

    def _guard(self, name: TableName, base: LoadedView | None, metadata: ViewMetadata) -> Guard | None:
        """Return the guard for a view that is new, or whose directories change; it is also checked immediately."""
        claim = claim_of(metadata.view_uuid, metadata.location, metadata.properties)
        if base is not None and claim.locations == roots_of(base.metadata.location, base.metadata.properties):
            return None
        guard = guard_of(self.backend.store, name, claim)
        guard(self.backend.catalog.entries())
        return guard


@dataclass(frozen=True)
class RestViewOperations:
    """Commits by sending changes to the server."""

    server: MetadataServer
    ambient: Ambient

    def load(self, name: TableName, known: LoadedView | None = None) -> LoadedView:
        loaded = self.server.views.load(name)
        if known is not None and known.location == loaded.location:
            return known
        return LoadedView(loaded.metadata, loaded.location)

    def create(self, name: TableName, location: str | None, metadata: ViewMetadata) -> None:
        self.server.views.create(name, location, metadata)

    def commit(self, name: TableName, base: LoadedView, metadata: ViewMetadata) -> None:
        updates = find_view_updates(base.metadata, metadata)

        def look() -> Outcome:
            try:
                current = self.load(name)
            except IcefieldError:
                return Outcome.UNKNOWN
            if current.location == base.location:
                return Outcome.UNMOVED
            return Outcome.LANDED if _shows(current.metadata, metadata) else Outcome.UNKNOWN

        def again() -> bool:
            try:
                self.server.views.commit(name, base.metadata.view_uuid, updates)
            except IcefieldError:
                return False
            return True

        try:
            self.server.views.commit(name, base.metadata.view_uuid, updates)
        except CommitStateUnknown as unknown:
            resolve_outcome(self.ambient, UnknownOutcome(name, "the view has the new definition", unknown), look, again)


def _judge(base: ViewMetadata, ours: ViewMetadata, current: ViewMetadata) -> Outcome:
    """Determine from the current metadata whether ours came between it and its base."""
    entry, before = ours.version_log[-1:], base.version_log[-1:]
    if entry == before:
        return Outcome.UNKNOWN  # only properties changed, which leave no trace
    if entry[0] in current.version_log and ours.current_version in current.versions:
        return Outcome.LANDED
    return Outcome.LOST if before and before[0] in current.version_log else Outcome.UNKNOWN


def _shows(current: ViewMetadata, ours: ViewMetadata) -> bool:
    same_columns = current.schema.fields == ours.schema.fields
    same_query = says_the_same(current.current_version, ours.current_version)
    return same_columns and same_query and current.properties == ours.properties
