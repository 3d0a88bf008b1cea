"""A table that does not exist before its first commit, which creates it with its first rows.

No one sees the table without its rows, and nothing is left of it if they cannot be written.
Raises AlreadyExists, and what `create_table` raises.
"""

from collections.abc import Callable, Sequence

from icefield.backend import Backend
from icefield.commit.action import Action
from icefield.commit.actions.create import TableDefinition, create_table, stage_table
from icefield.commit.loop import NO_FILES, OwnFiles
from icefield.commit.operations.tables import TableVersion
from icefield.commit.validate.transaction_reads import RowsRead
from icefield.dml.head import LiveHead
from icefield.engine.rows import SessionChoice
from icefield.model.metadata import TableMetadata
from icefield.model.names import TableName
from icefield.model.snapshot import Snapshot


class NewTable:
    """The head of a table that is created by its first commit.

    created: the table, once it exists.
    """

    def __init__(
        self,
        backend: Backend,
        name: TableName,
        location: str | None,
        definition: TableDefinition,
        sessions: SessionChoice,
    ) -> None:
        self.backend = backend
        self.name = name
        self.sessions = sessions
        self.pinned_at: float | None = None
        self.created: TableVersion | None = None
        self._staged = stage_table(backend, name, location, definition)

    def load(self) -> TableVersion:
        return self.created or TableVersion(self._staged, "")

    def committed(self, loaded: TableMetadata) -> TableMetadata:
        return loaded

    def commit(self, actions: Sequence[Action], own: OwnFiles = NO_FILES) -> TableMetadata:
        self.created = create_table(self.backend, self.name, self._staged, actions, own)
        return self.created.metadata

    def note_read(self, find: Callable[[], RowsRead | None]) -> None:
        """Do nothing: there are no rows to read."""

    def holds(self, snapshot: Snapshot) -> bool:
        return False

    def beside(self, name: TableName) -> LiveHead:
        head = LiveHead(self.backend, name)
        head.sessions = self.sessions
        return head
