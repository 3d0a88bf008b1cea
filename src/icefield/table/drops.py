"""Register and drop tables, restore them, and remove the files of those that can no longer be restored."""

from __future__ import annotations

from abc import ABC, abstractmethod

from icefield.arguments import check_arguments
from icefield.deferred import deferred_imports
from icefield.errors import CorruptFile, IcefieldError, LocationRefused, MissingFile, Unsupported
from icefield.upkeep.result import silent

with deferred_imports(__name__):
    from icefield.backend import Backend
    from icefield.commit.operations.choose import operations_of
    from icefield.commit.relocate import MovedLake, Progress
    from icefield.model.names import TableName
    from icefield.table.table import Table
    from icefield.upkeep.dropped import DroppedTable, DroppedTables
    from icefield.upkeep.result import SweepResult


@check_arguments
class LakeDrops(ABC):
    """The part of a lake that registers, drops and restores tables."""

    backend: Backend
    warehouse: str

    @abstractmethod
    def _register(self, name: str, metadata_location: str, *, is_restored: bool) -> Table:
        """Add an existing table to the catalog."""

    @abstractmethod
    def _known(self, name: str) -> TableName:
        """Check the name of a table."""

    def register_table(self, name: str, metadata_location: str) -> Table:
        """Add an existing table to the catalog, by the location of its metadata file.

        Raise AlreadyExists if the catalog has the table under another name, and InvalidInput if its location overlaps
        with that of another table. Later commits delete no metadata file that was there before.
        """
        return self._register(name, metadata_location, is_restored=False)

    def drop_table(self, name: str, *, purge: bool = False) -> None:
        """Remove a table from the catalog. `undrop` restores it.

        Args:
            name: The table.
            purge: Have `purge_dropped` remove its files when the time of `icefield.gc.undrop-ms` is over. By default
                they are kept.
        """
        table = self._known(name)
        try:
            version = operations_of(self.backend).load(table)
        except (CorruptFile, MissingFile, LocationRefused, Unsupported) as error:
            moved = self._moved.explain(error)
            if purge and moved is not error:
                raise moved from error
            version = None  # a table that cannot be read can still be dropped
        self._dropped.drop(table, version, purge=purge)

    def dropped(self) -> list[DroppedTable]:
        """List the dropped tables that can be restored, the newest first."""
        return self._dropped.tables()

    def undrop(self, name: str, *, to: str | None = None) -> Table:
        """Restore a dropped table as it was.

        Args:
            name: The name that it had, or its uuid.
            to: A new name. By default the old one.
        """
        dropped, claim = self._dropped.claim(name)
        try:
            table = self._register(to or dropped.table, dropped.metadata_location, is_restored=True)
        except IcefieldError as error:
            if error.cleanable:
                self._dropped.release(claim)
            raise
        self._dropped.finish(dropped)
        return table

    def purge_dropped(self, *, dry_run: bool = False, progress: Progress = silent) -> list[SweepResult]:
        """Remove the files of tables that were dropped with `purge` and can no longer be restored.

        Args:
            dry_run: Return what would be deleted, and delete nothing.
            progress: Called with each file that is deleted.
        """
        return self._dropped.purge(self._moved.explain, dry_run=dry_run, progress=progress)

    @property
    def _moved(self) -> MovedLake:
        return MovedLake(self.backend.catalog, self.backend.store, self.warehouse)

    @property
    def _dropped(self) -> DroppedTables:
        return DroppedTables(self.backend, self.warehouse)
