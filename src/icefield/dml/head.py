"""The head of a table handle: where it loads the newest metadata, and how it commits actions.

A `LiveHead` follows the catalog, and commits at once. In a transaction a different head replaces it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from icefield.commit.loop import NO_FILES, Committer, OwnFiles, TableCommit
from icefield.deferred import deferred_imports
from icefield.errors import NoSuchTable

with deferred_imports(__name__):
    from icefield.backend import Backend
    from icefield.commit.action import Action, WriteContext
    from icefield.commit.attempt import DraftStore
    from icefield.commit.operations.choose import operations_of
    from icefield.commit.operations.tables import TableVersion
    from icefield.commit.validate.transaction_reads import RowsRead
    from icefield.engine.rows import SessionChoice
    from icefield.model.metadata import TableMetadata
    from icefield.model.names import TableName
    from icefield.model.snapshot import Snapshot
    from icefield.model.updates import AddSnapshot


class TableHead(Protocol):
    """The newest version of one table, as a handle sees it."""

    backend: Backend
    name: TableName
    sessions: SessionChoice
    pinned_at: float | None  # when a transaction loaded the table, on the monotonic clock; None outside of one

    def load(self) -> TableVersion:
        """Return the newest metadata and its location."""
        ...

    def committed(self, loaded: TableMetadata) -> TableMetadata:
        """Return the committed version below the loaded one, which may include changes of a transaction."""
        ...

    def commit(self, actions: Sequence[Action], own: OwnFiles = NO_FILES) -> TableMetadata:
        """Commit actions; remove the data files written for them if the commit certainly failed."""
        ...

    def note_read(self, find: Callable[[], RowsRead | None]) -> None:
        """Record rows that a handle reads. find: what it reads; called only where reads are recorded."""
        ...

    def holds(self, snapshot: Snapshot) -> bool:
        """Return whether a lease of the handle itself protects the files of a snapshot."""
        ...

    def beside(self, name: TableName) -> TableHead:
        """Return the head of another table, as seen from here: in a transaction, pinned by it."""
        ...


def preview(action: Action, head: TableHead, base: TableMetadata | None = None) -> Snapshot | None:
    """Return the snapshot that an action would make; the files that it proposes are not written.

    base: the version that it would change. By default the newest.
    """
    context = WriteContext.of(head.backend, DraftStore(head.backend.store))
    change = action.propose(base or head.load().metadata, context)
    return next((update.snapshot for update in change.updates if isinstance(update, AddSnapshot)), None)


class LiveHead:
    """The table as it is in the catalog.

    retries: how often a commit is tried again after a conflict; None for as often as the table's properties say.
    """

    def __init__(self, backend: Backend, name: TableName, known: TableVersion | None = None) -> None:
        self.backend = backend
        self.name = name
        self._known = known
        self._known_at: float | None = None
        self.pinned_at: float | None = None
        self.sessions = SessionChoice()
        self.retries: int | None = None

    @property
    def known(self) -> TableVersion | None:
        """The version that was loaded or committed last, without asking the catalog."""
        return self._known

    def load(self) -> TableVersion:
        known = self._known
        loaded = operations_of(self.backend).load(self.name, known)
        self._known_at = self.backend.ambient.monotonic()
        if loaded is known:
            return known
        if known is not None and not loaded.metadata.is_table(known.metadata.table_uuid):
            raise NoSuchTable(
                f"table {self.name} was dropped and recreated since this handle was opened", hint="Reopen it"
            )
        self._known = loaded
        return loaded

    def committed(self, loaded: TableMetadata) -> TableMetadata:
        return loaded

    def commit(self, actions: Sequence[Action], own: OwnFiles = NO_FILES) -> TableMetadata:
        committer = Committer(self.backend)
        known = self._known or self.load()
        uuid, at = known.metadata.table_uuid, self._known_at
        part = TableCommit(self.name, actions, uuid, known, own=[own], known_at=at, retries=self.retries)
        (self._known,) = committer.commit([part])
        return self._known.metadata

    def note_read(self, find: Callable[[], RowsRead | None]) -> None:
        """Do nothing: reads outside a transaction are not validated."""

    def holds(self, snapshot: Snapshot) -> bool:
        return False

    def beside(self, name: TableName) -> LiveHead:
        head = LiveHead(self.backend, name)
        head.sessions = self.sessions
        return head


class PinnedHead(LiveHead):
    """A table as it was when it was loaded, together with others; a commit starts from there.

    at: when it was loaded, on the monotonic clock.
    """

    def __init__(self, backend: Backend, name: TableName, version: TableVersion, at: float) -> None:
        super().__init__(backend, name, version)
        self._version = version
        self.pinned_at = at

    def load(self) -> TableVersion:
        return self._version
