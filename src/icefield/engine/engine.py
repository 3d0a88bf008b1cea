"""The interface between the verbs and the engines that process rows.

A verb is written once, against `RowEngine`. Its work on files is a `FileWork`: a small picklable value that reads files
one after another, may write others, and returns a few small results. The local engine runs it in this process; the
Spark engine runs it in the Python workers of executors, so that neither rows nor positions pass through the driver.

    verb      plan -> groups of FileTasks -> engine.run(work, groups) -> results -> commit
    local     one group after another, reading ahead
    Spark     one task per group; an error that is not worth a retry is returned as a value
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from icefield.codec.manifest.rows import DataFiles
from icefield.parquet.read.read import TableFiles, TableReader
from icefield.parquet.read.read_ahead import read_files_ahead
from icefield.parquet.read.task import FileTask
from icefield.parquet.write.plan import WritePlan
from icefield.parquet.write.row_order import RowOrder
from icefield.plan.plan import ScanPlan
from icefield.storage.store import Store

if TYPE_CHECKING:
    from icefield.engine.change import Changed, ChangePlan, Clause, Merge, MergeSource
    from icefield.engine.equality_upsert import EqualityFiles, EqualityPlan


T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True)
class Site:
    """Where a group of files is processed. name: the unique prefix of new file names."""

    store: Store
    files: TableFiles
    name: str

    def read(self, tasks: Iterable[FileTask]) -> Iterator[tuple[TableReader, FileTask]]:
        """Yield each task with a reader that reads its files, and the next ones, ahead."""
        return read_files_ahead(self.store, self.files, tasks)


class FileWork(Protocol[T_co]):
    """Work on the files of a group; picklable."""

    @property
    def plan(self) -> WritePlan | None:
        """The settings of new files; None for work that writes none."""
        ...

    def run(self, tasks: Iterable[FileTask], site: Site) -> Iterator[T_co]:
        """Run it, and yield results; after an error, the files that it wrote are removed."""
        ...


class RowEngine(Protocol):
    """Runs one operation on the rows of one version of a table."""

    @property
    def width(self) -> int:
        """About how many files it reads concurrently."""
        ...

    def group(self, tasks: Iterable[FileTask]) -> Iterable[Iterable[FileTask]]:
        """Split files into groups that are processed as a whole; their order is kept."""
        ...

    def run(self, work: FileWork[T], groups: Iterable[Iterable[FileTask]]) -> Iterator[T]:
        """Run work on groups of files, and yield the results in the order of the groups."""
        ...

    def write(self, rows: Any, plan: WritePlan, replaced: Sequence[ScanPlan] = ()) -> DataFiles:
        """Write rows, and the remaining rows of partially replaced files, to data files."""
        ...

    def write_in_order(self, scan: ScanPlan, plan: WritePlan, order: RowOrder) -> DataFiles:
        """Write the rows of planned files to new ones, those of each partition in an order."""
        ...

    def merge(self, source: "MergeSource", merge: "Merge", plan: "ChangePlan") -> "Changed":
        """Match source rows with the rows of planned files, and apply the clauses."""
        ...

    def change_matching(self, clause: "Clause", plan: "ChangePlan") -> "Changed":
        """Apply a clause to the rows of planned files that match the filter of the plan and its condition."""
        ...

    def upsert_by_equality(self, rows: Any, plan: "EqualityPlan") -> "EqualityFiles":
        """Write rows, whose schema was checked, to data files, and their keys to equality delete files."""
        ...


@dataclass(frozen=True)
class EngineUse:
    """The engine of an operation, and why it was chosen."""

    name: str
    reason: str

    def __str__(self) -> str:
        return f"{self.name} ({self.reason})"
