"""The seam between the verbs and the engines that move rows.

A verb is written once, against `RowEngine`. What it does to files is a `FileWork`: a small picklable value that reads
files one after the other, may write others, and returns a few small results. The local engine runs it in this process;
the Spark engine runs it in the Python workers of executors, so that neither rows nor positions pass through the driver.

    verb      plan -> groups of FileTasks -> engine.run(work, groups) -> results -> commit
    local     one group after the other, with the next files under way
    Spark     one task per group; an error that is not worth a retry comes back as a value
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import pyarrow as pa

from icefield.parquet.read.read import TableFiles, TableReader
from icefield.parquet.read.read_ahead import read_files_ahead
from icefield.parquet.read.task import FileTask
from icefield.parquet.write.write import WritePlan
from icefield.plan.plan import ScanPlan
from icefield.storage.store import Store

if TYPE_CHECKING:
    from icefield.engine.upsert import Upserted, UpsertPlan, UpsertRows

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True)
class Site:
    """Where a group of files is worked on. name: what new files are called by, unlike those of every other run."""

    store: Store
    files: TableFiles
    name: str

    def read(self, tasks: Iterable[FileTask]) -> Iterator[tuple[TableReader, FileTask]]:
        """Yield each task with a reader that has its files, and those of the next ones, under way."""
        return read_files_ahead(self.store, self.files, tasks)


class FileWork(Protocol[T_co]):
    """Something to be done with the files of a group; picklable."""

    @property
    def plan(self) -> WritePlan | None:
        """What new files are written by; None for a work that writes none."""
        ...

    def run(self, tasks: Iterable[FileTask], site: Site) -> Iterator[T_co]:
        """Do it, and yield results; after an error nothing that it wrote is left."""
        ...


class RowEngine(Protocol):
    """Does the work of one operation on the rows of one version of a table."""

    @property
    def width(self) -> int:
        """How many files it reads side by side, about."""
        ...

    def group(self, tasks: Iterable[FileTask]) -> Iterable[Iterable[FileTask]]:
        """Cut files into groups that it works on as a whole; they stay in order."""
        ...

    def run(self, work: FileWork[T], groups: Iterable[Iterable[FileTask]]) -> Iterator[T]:
        """Do a work on groups of files, and yield the results in the groups' order."""
        ...

    def write(self, rows: Any, plan: WritePlan, replaced: Sequence[ScanPlan] = ()) -> pa.Table:
        """Write rows, and the rows that stay of files which are replaced in part, to data files."""
        ...

    def upsert(self, source: "UpsertRows", plan: "UpsertPlan") -> "Upserted":
        """Match rows with planned files by key, and write what comes of it."""
        ...


@dataclass(frozen=True)
class EngineUse:
    """Which engine an operation runs on, and why."""

    name: str
    reason: str

    def __str__(self) -> str:
        return f"{self.name} ({self.reason})"
