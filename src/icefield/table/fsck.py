"""Check tables and measure them: `fsck` and `report` of tables and lakes.

Raises InvalidInput, NoSuchTable, StorageError, CatalogError.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence

from icefield.arguments import check_arguments
from icefield.deferred import deferred_imports
from icefield.errors import IcefieldError, InvalidInput
from icefield.table.versions.history import TableHistory

with deferred_imports(__name__):
    from icefield.backend import Backend
    from icefield.commit.relocate import MovedLake, Progress
    from icefield.dml.head import LiveHead
    from icefield.fsck.check import FsckOptions, LakeTables, fsck_lake, fsck_table
    from icefield.fsck.finding import LakeFsck, TableFsck
    from icefield.model.names import TableName
    from icefield.report.measure import check_price, measure_lake, measure_table
    from icefield.report.result import StorageReport


@check_arguments
class TableChecks(TableHistory):
    """The part of a table handle that checks the table."""

    def fsck(
        self, *, deep: bool = False, repair: bool = False, dry_run: bool = False, drop_files: Sequence[str] = ()
    ) -> TableFsck:
        """Check that every file of every snapshot exists, and that what metadata says of it is true.

        Readers and writers go on. Only what can be repaired without losing anything is repaired: branches and tags
        that point at no snapshot are dropped, and statistics files that do not exist are forgotten.

        Args:
            deep: Also open every data and delete file, to compare its rows with metadata.
            repair: Repair what can be repaired.
            dry_run: Return what would be repaired, and change nothing.
            drop_files: With `repair`, remove these data files from the table, with their rows. They must be missing.
        """
        if not isinstance(self._head, LiveHead):
            raise InvalidInput("tables are not checked in a transaction", hint="Use a handle of the lake")
        return fsck_table(self._head, FsckOptions(deep, repair, dry_run, tuple(drop_files)))

    def report(self, *, price: float | None = None) -> StorageReport:
        """Report what the table stores: live, history, waiting for deletion, orphans; and what upkeep would gain.

        Args:
            price: What a gigabyte (10^9 bytes) costs in a month, to report money too.
        """
        if not isinstance(self._head, LiveHead):
            raise InvalidInput("tables are not measured in a transaction", hint="Use a handle of the lake")
        return measure_table(self._head, check_price(price))


@check_arguments
class LakeChecks(ABC):
    """The part of a lake that checks its tables."""

    backend: Backend
    warehouse: str

    @abstractmethod
    def tables(self, namespace: str | None = None) -> list[str]:
        """List the tables."""

    @abstractmethod
    def _known(self, name: str) -> TableName:
        """Check the name of a table."""

    def fsck(
        self,
        tables: Sequence[str] | None = None,
        *,
        deep: bool = False,
        together: bool = False,
        repair: bool = False,
        dry_run: bool = False,
        progress: Progress = lambda name: None,
    ) -> LakeFsck:
        """Check several tables, or all, as `Table.fsck` does; also those whose metadata file cannot be read.

        A table that cannot be checked does not hide the others: it has a finding that says why.

        Args:
            tables: The tables. By default all.
            deep: Also open every data and delete file.
            together: A job changes these tables one after another under the same idempotency keys or stream batches:
                report changes that only some of them have.
            repair: Repair what can be repaired.
            dry_run: Return what would be repaired, and change nothing.
            progress: Called with the name of each table that was checked.
        """
        chosen = LakeTables(self._named(tables), tables is not None, self._explain)
        options = FsckOptions(deep, repair, dry_run)
        return fsck_lake(self.backend, chosen, options, together=together, progress=progress)

    def report(
        self,
        tables: Sequence[str] | None = None,
        *,
        price: float | None = None,
        progress: Progress = lambda name: None,
    ) -> StorageReport:
        """Report what several tables store, or all, as `Table.report` does, and the sums.

        A table that cannot be measured does not hide the others: its report has only an `error`.

        Args:
            tables: The tables. By default all.
            price: What a gigabyte costs in a month.
            progress: Called with the name of each table that is measured.
        """
        heads = [LiveHead(self.backend, name) for name in self._named(tables)]
        return measure_lake(heads, self._explain, check_price(price), are_named=tables is not None, progress=progress)

    @property
    def _explain(self) -> Callable[[IcefieldError], IcefieldError]:
        return MovedLake(self.backend.catalog, self.backend.store, self.warehouse).explain

    def _named(self, tables: Sequence[str] | None) -> list[TableName]:
        """Return the names of these tables, each once, or of all."""
        return list(dict.fromkeys(self._known(name) for name in (self.tables() if tables is None else tables)))
