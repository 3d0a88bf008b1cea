"""Work on files whose rows are put in an order: sort partitions that fit in memory, sample those that do not."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby

import numpy as np
import pyarrow as pa

from icefield.codec.manifest.rows import DataFiles
from icefield.engine.engine import Site
from icefield.engine.file_works import NO_POSITIONS
from icefield.expr.bind.bound import TRUE
from icefield.parquet.read.task import FileTask
from icefield.parquet.write.plan import WritePlan
from icefield.parquet.write.row_order import RowOrder
from icefield.parquet.write.write import DataWriter
from icefield.types.arrow import arrow_schema
from icefield.types.schema import Schema


@dataclass(frozen=True)
class SortedFiles:
    """The new files of a group."""

    files: DataFiles

    @property
    def locations(self) -> list[str]:
        """Where they are."""
        found: list[str] = self.files.file_path.to_pylist()
        return found


@dataclass(frozen=True)
class SortFiles:
    """Writes the rows of files in an order, one partition after another; each is sorted in memory."""

    plan: WritePlan
    order: RowOrder

    def run(self, tasks: Iterable[FileTask], site: Site) -> Iterator[SortedFiles]:
        schema = self.plan.schema
        writer = DataWriter(self.plan, site.store, site.name)
        try:
            for _, own in groupby(tasks, lambda task: task.partition_identity):
                rows = (
                    batch
                    for reader, task in site.read(own)
                    for batch in reader.read_without(task, schema, NO_POSITIONS)
                )
                table = pa.Table.from_batches(rows, arrow_schema(schema))
                for batch in self.order.sorted(table, schema).to_batches():
                    writer.write(batch)
            yield SortedFiles(writer.close())
        except BaseException:
            writer.abort()
            raise


@dataclass(frozen=True)
class RowSample:
    """Some rows of a file, with the columns of an order. weight: how many rows each stands for."""

    partition: tuple[int, bytes]
    rows: pa.Table
    weight: int


@dataclass(frozen=True)
class SampleRows:
    """Reads the columns of an order of some rows of each file, evenly spread over it; picklable."""

    schema: Schema
    columns: list[str]
    most_rows: int
    plan: None = None

    def run(self, tasks: Iterable[FileTask], site: Site) -> Iterator[RowSample]:
        for reader, task in site.read(tasks):
            step = max(1, task.record_count // self.most_rows)
            some = [
                batch.take(pa.array(np.arange(0, batch.num_rows, step)))
                for batch in reader.read(task, self.schema, self.columns, TRUE)
            ]
            if some:
                yield RowSample(task.partition_identity, pa.Table.from_batches(some), step)
