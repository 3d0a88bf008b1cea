"""Create and change views, with the same compare-and-swap and retries as tables.

Raises AlreadyExists, NotFound, InvalidInput, CommitConflict, CommitStateUnknown.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from uuid import UUID

from icefield.deferred import deferred_imports
from icefield.errors import NotFound
from icefield.model.view import ViewDefinition, ViewMetadata, create_view

with deferred_imports(__name__):
    from icefield.backend import Backend
    from icefield.commit.operations.choose import view_operations_of
    from icefield.commit.operations.views import LoadedView, ViewOperations
    from icefield.commit.retry import retry
    from icefield.model.names import TableName

Edit = Callable[[ViewMetadata, int], ViewMetadata]


@dataclass(frozen=True)
class ViewCommitter:
    """Commits to one view."""

    backend: Backend
    name: TableName

    def create(self, location: str | None, definition: ViewDefinition, properties: Mapping[str, str]) -> None:
        """Create the view at a new location; None if the catalog chooses it."""
        now_ms = self.backend.ambient.now_ms()
        metadata = create_view(self.backend.ambient.random_uuid(), location or "", definition, properties, now_ms)
        self._operations.create(self.name, location, metadata)

    def edit(self, edit: Edit, expected_uuid: UUID) -> None:
        """Change the newest metadata, retrying after conflicts; without a change, there is no commit."""
        retry(
            self.backend.ambient,
            self.name,
            lambda: self._load(expected_uuid),
            lambda location, base: self._attempt(edit, LoadedView(base, location)),
        )

    @property
    def _operations(self) -> ViewOperations:
        return view_operations_of(self.backend)

    def _load(self, expected_uuid: UUID) -> tuple[str, ViewMetadata]:
        base = self._operations.load(self.name)
        if base.metadata.view_uuid != expected_uuid:
            raise NotFound(f"view {self.name} was dropped and recreated since it was opened", hint="Reopen it")
        return base.location, base.metadata

    def _attempt(self, edit: Edit, base: LoadedView) -> None:
        metadata = edit(base.metadata, self.backend.ambient.now_ms())
        if metadata != base.metadata:
            self._operations.commit(self.name, base, metadata)
