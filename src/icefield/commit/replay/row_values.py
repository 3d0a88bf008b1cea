"""Find rows in other files by their values, where they cannot be found by their ids.

No reader can distinguish rows that have the same values, so any of them may be taken for another. For example,
with the rows of a file that was copied without one of them:

    lost         (1, a)  (1, a)  (2, b)
    new files    (1, a)  (3, c)              one of the rows (1, a) is found, the other two are not
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icefield.commit.replay.nested_keys import encode_rows
from icefield.commit.replay.row_ids import Lost, split_lost
from icefield.expr.bind.bound import TRUE
from icefield.model.metadata import TableMetadata
from icefield.parquet.read.deletes import Positions
from icefield.parquet.read.read_ahead import read_ahead
from icefield.parquet.read.task import FileTask
from icefield.storage.store import Store
from icefield.types.arrays import Longs, Mask
from icefield.types.metadata_columns import POSITION, with_free_names


def find_by_values(
    lost: Sequence[Lost],
    files: Sequence[FileTask],
    metadata: TableMetadata,
    store: Store,
    into: dict[str, list[Positions]],
) -> list[Lost]:
    """Collect the places of rows among the live rows of files, each place once; return those that are nowhere."""
    if not files:
        return list(lost)
    sources = [replace(each.task, deletes=()) for each in lost]
    read = zip(_read(sources, metadata, store), lost, strict=True)
    wanted = pa.concat_arrays([keys.take(pa.array(each.positions)) for (_, keys), each in read])
    distinct = wanted.unique()
    codes: Longs = pc.index_in(wanted, value_set=distinct).to_numpy().astype(np.int64)
    left = np.bincount(codes, minlength=len(distinct))
    for task, (positions, keys) in zip(files, _read(files, metadata, store), strict=True):
        is_free = _are_free(positions, task.location, into)
        found = pc.fill_null(pc.index_in(keys, value_set=distinct), -1).to_numpy().astype(np.int64)
        at = np.flatnonzero((found >= 0) & is_free)
        at = at[_occurrence(found[at]) < left[found[at]]]
        if len(at):
            into.setdefault(task.location, []).append(positions[at])
            left -= np.bincount(found[at], minlength=len(distinct))
    return split_lost(lost, _occurrence(codes) >= left[codes])


def _read(tasks: Sequence[FileTask], metadata: TableMetadata, store: Store) -> Iterator[tuple[Positions, pa.Array]]:
    """Yield the positions of the live rows of each file, and their values as one key each."""
    schema, (position,) = with_free_names(metadata.schema, (POSITION,))
    names = [field.name for field in metadata.schema.fields]
    for reader, task in read_ahead(store, metadata, tasks):
        positions, keys = [np.zeros(0, np.int64)], [pa.array([], pa.binary())]
        for batch in reader.read(task, schema, [*names, position], TRUE):
            positions.append(batch.column(position).to_numpy())
            keys.append(encode_rows([batch.column(name) for name in names], batch.num_rows))
        yield np.concatenate(positions), pa.concat_arrays(keys)


def _are_free(positions: Positions, path: str, taken: Mapping[str, list[Positions]]) -> Mask:
    return ~np.isin(positions, np.concatenate([np.zeros(0, np.int64), *taken.get(path, ())]))


def _occurrence(codes: Longs) -> Longs:
    """Return how many equal codes are before each."""
    order = np.argsort(codes, kind="stable")
    sorted_codes = codes[order]
    starts = np.searchsorted(sorted_codes, sorted_codes)
    counts = np.empty(len(codes), np.int64)
    counts[order] = np.arange(len(codes)) - starts
    return counts
