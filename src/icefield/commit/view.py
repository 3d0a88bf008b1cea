"""Create views and change them: the same compare-and-swap and the same retries as tables have.

A view's metadata has no log of files, so a lost reply is settled by its version log: what was to become current is in
it, or the log goes on from the base without it.

Raises AlreadyExists, NotFound, InvalidInput, CommitConflict, CommitStateUnknown.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from uuid import UUID

from icefield.ambient import Ambient
from icefield.catalog.catalog import Catalog, Kind, PointerSwap
from icefield.codec.view_json import decode_view, encode_view
from icefield.commit.load import read_metadata_file
from icefield.commit.loop import next_metadata_name, remove_quietly
from icefield.commit.retry import Outcome, SettledSwap, retry
from icefield.errors import IcefieldError, NotFound
from icefield.model.names import TableName
from icefield.model.view import ViewDefinition, ViewMetadata, create_view
from icefield.storage.location import join_location
from icefield.storage.store import Store

METADATA_PATH = "write.metadata.path"

Edit = Callable[[ViewMetadata, int], ViewMetadata]


def load_view_metadata(store: Store, location: str) -> ViewMetadata:
    """Read and decode a view's metadata file."""
    return decode_view(read_metadata_file(store, location), location)


@dataclass(frozen=True)
class ViewCommitter:
    """Commits to one view."""

    catalog: Catalog
    store: Store
    ambient: Ambient
    name: TableName

    def create(self, location: str, definition: ViewDefinition, properties: Mapping[str, str]) -> None:
        """Create the view at a location of its own."""
        metadata = create_view(self.ambient.random_uuid(), location, definition, properties, self.ambient.now_ms())
        self._publish(metadata, None, lambda change: self.catalog.swap([change]))

    def edit(self, edit: Edit, expected_uuid: UUID) -> None:
        """Change the newest metadata, again and again while others come first; no change is no commit."""
        retry(
            self.ambient,
            self.name,
            lambda: self._load(expected_uuid),
            lambda location, base: self._attempt(edit, location, base),
        )

    def _load(self, expected_uuid: UUID) -> tuple[str, ViewMetadata]:
        location = self.catalog.pointer(self.name, Kind.VIEW)
        base = load_view_metadata(self.store, location)
        if base.view_uuid != expected_uuid:
            raise NotFound(f"view {self.name} was dropped and made anew since it was opened", hint="Open it again")
        return location, base

    def _attempt(self, edit: Edit, base_location: str, base: ViewMetadata) -> None:
        metadata = edit(base, self.ambient.now_ms())
        if metadata == base:
            return

        def judge(current: str) -> Outcome:
            return _judge(base, metadata, load_view_metadata(self.store, current))

        self._publish(metadata, base_location, SettledSwap(self.catalog, self.ambient, judge).make)

    def _publish(self, metadata: ViewMetadata, previous: str | None, swap: Callable[[PointerSwap], None]) -> None:
        folder = metadata.properties.get(METADATA_PATH, join_location(metadata.location, "metadata"))
        location = join_location(folder, f"{next_metadata_name(previous, self.ambient)}.metadata.json")
        self.store.put_new(location, encode_view(metadata))
        try:
            swap(PointerSwap(self.name, previous, location, Kind.VIEW))
        except IcefieldError as error:
            if error.cleanable:
                remove_quietly(self.store, [location])
            raise


def _judge(base: ViewMetadata, ours: ViewMetadata, current: ViewMetadata) -> Outcome:
    """Tell from metadata that is current whether ours came between it and its base."""
    entry, before = ours.version_log[-1:], base.version_log[-1:]
    if entry == before:
        return Outcome.UNKNOWN  # only properties changed, which leave no trace
    if entry[0] in current.version_log and ours.current_version in current.versions:
        return Outcome.LANDED
    return Outcome.LOST if before and before[0] in current.version_log else Outcome.UNKNOWN
