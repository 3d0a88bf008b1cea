"""The order of rows that a compaction asks for, and what became of each partition that was put in order."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from icefield.commit.actions.rewrite import RewrittenGroup
from icefield.commit.snapshot.manifests import AddedFiles
from icefield.compaction.options import SORT, CompactionRequest
from icefield.engine.engine import RowEngine, Site
from icefield.errors import InvalidInput
from icefield.expr.bind.bound import TRUE
from icefield.model.metadata import TableMetadata
from icefield.model.partition import find_source
from icefield.model.sort_order import UNSORTED, SortOrder, parse_order_by
from icefield.parquet.read.task import FileTask
from icefield.parquet.write.row_order import RowOrder, column_keys, rank_column
from icefield.plan.partition.keys import partition_keys
from icefield.plan.plan import ScanPlan
from icefield.plan.planned_files import PlannedFiles
from icefield.types.arrow_keys import NOT_FOUND, KeyIndex
from icefield.types.schema import Schema
from icefield.types.transforms import Identity

MOST_COLUMNS = 4
SAMPLED_FILES = 64
SAMPLED_ROWS = 20_000


def check_order(request: CompactionRequest, base: TableMetadata) -> tuple[int, ...]:
    """Return the ids of the columns to cluster by; refuse an order that the table does not have."""
    if request.strategy == SORT and request.order_by:
        parse_order_by(request.order_by, base.schema)
        return ()
    if request.strategy == SORT:
        if base.sort_order.is_unsorted:
            raise InvalidInput(
                "cannot sort: the table has no sort order",
                hint="Set one with evolve().set_sort_order(...), or cluster by columns",
            )
        return ()
    if len(request.cluster_by) > MOST_COLUMNS:
        raise InvalidInput(
            f"cannot cluster by {len(request.cluster_by)} columns: with more than {MOST_COLUMNS}, files hold a wide "
            "range of each"
        )
    ids = tuple(_column(base.schema, name) for name in request.cluster_by)
    if len(set(ids)) < len(ids):
        raise InvalidInput("cluster_by names a column twice")
    return ids


def find_order(scan: ScanPlan, request: CompactionRequest, base: TableMetadata, engine: RowEngine) -> RowOrder:
    """Return the order for the rows of planned files; to cluster them, a sample of their columns is read."""
    ids = check_order(request, base)
    if not ids:
        return RowOrder(_sort_order(request, base) if request.order_by else base.sort_order)
    step = max(1, scan.files.num_rows // SAMPLED_FILES)
    some = scan.files.take(np.arange(0, scan.files.num_rows, step))
    most = max(1, SAMPLED_ROWS // max(1, some.num_rows))
    work = SampleColumns(scan.version.schema, ids, most)
    samples = list(engine.run(work, engine.group(scan.tasks(some))))
    columns = []
    for at, field_id in enumerate(ids):
        keys = pa.concat_arrays([sample[at] for sample in samples])
        columns.append(rank_column(field_id, keys, len(ids)))
    return RowOrder(UNSORTED, tuple(columns))


@dataclass(frozen=True)
class SampleColumns:
    """Reads the sort keys of some rows of each file, evenly spread over it; picklable."""

    schema: Schema
    field_ids: tuple[int, ...]
    most_rows: int
    plan: None = None

    def run(self, tasks: Iterable[FileTask], site: Site) -> Iterator[tuple[pa.Array, ...]]:
        """Yield the keys of each file, one array for each column."""
        select = [self.schema.paths[i][0] for i in self.field_ids]
        for reader, task in site.read(tasks):
            step = max(1, task.record_count // self.most_rows)
            found: list[list[pa.Array]] = [[] for _ in self.field_ids]
            for batch in reader.read(task, self.schema, list(dict.fromkeys(select)), TRUE):
                some = batch.take(pa.array(np.arange(0, batch.num_rows, step)))
                for keys, field_id in zip(found, self.field_ids, strict=True):
                    keys.append(column_keys(some, self.schema, field_id))
            if found[0]:
                yield tuple(pa.concat_arrays(keys) for keys in found)


def split_by_partition(replaced: Sequence[PlannedFiles], added: AddedFiles) -> list[RewrittenGroup]:
    """Return the old and the new files of each partition, or all of them together where these do not correspond.

    They do not if specs differ, or if rows are not in the partition that metadata says: then a new file may belong to
    no partition of the old ones.
    """
    together = [RewrittenGroup(PlannedFiles.concat(replaced), added.columns, None)]
    spec = added.shape.spec
    if any(files.spec_id[0].as_py() != spec.spec_id for files in replaced):
        return together
    index = KeyIndex([pa.array([files.partition_key[0].as_py() for files in replaced], pa.binary())], len(replaced))
    found = index.find([partition_keys(added.columns, spec)], added.columns.num_rows)
    if (found == NOT_FOUND).any():
        return together
    order = np.argsort(found, kind="stable")
    starts = np.searchsorted(found[order], np.arange(len(replaced) + 1))
    return [
        RewrittenGroup(files, added.columns.take(order[starts[code] : starts[code + 1]]), None)
        for files, code in zip(replaced, index.codes.tolist(), strict=True)
    ]


def _sort_order(request: CompactionRequest, base: TableMetadata) -> SortOrder:
    """Return the order that was asked for, with the id that the table has for it: files record only such orders."""
    asked = parse_order_by(request.order_by, base.schema)
    known = (each.order_id for each in base.sort_orders if each.fields == asked.fields)
    return replace(asked, order_id=next(known, UNSORTED.order_id))


def _column(schema: Schema, name: str) -> int:
    try:
        return find_source(schema, name, Identity(), name).field_id
    except InvalidInput as error:
        why = error.message.removeprefix(f"{name!r}: ")
        raise InvalidInput(f"cannot cluster by {name!r}: {why}", hint=error.hint) from error
