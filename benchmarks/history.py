"""What branches cost: publish a branch of 1,000 files, diff a large table after few changes, branch many tables.

    python -m benchmarks history [files]

- Publish: a branch that added 1,000 data files, and one that removed 1,000, into a main that has changed since and has
  1,000, 10,000 and 100,000 files. The data files themselves are not written.
- Diff: two versions of a table of 1,000,000 rows in 20 files, with 1,000 upserts of keys of one file between them.
- Branch: `lake.branch` of 50 tables on a local disk.

CPU time, the median of some rounds, and what was read and written.
"""

import tempfile
from collections.abc import Callable
from statistics import median
from time import perf_counter, process_time

import numpy as np
import pyarrow as pa

import icefield
from benchmarks.decode_manifest import entries
from benchmarks.metadata_size import SCHEMA, CountingStore
from icefield.codec.manifest.rows import DataFiles
from icefield.commit.action import CommitTarget
from icefield.commit.actions.append import AppendFiles
from icefield.table.table import Table

BRANCH_FILES, PER_COMMIT, ROUNDS = 1_000, 1_000, 5
ROWS, ROWS_PER_FILE, UPSERTS, TABLES = 1_000_000, 50_000, 1_000, 50


def run(files: int = 100_000) -> None:
    """Print all measurements."""
    for count in (BRANCH_FILES, files // 10, files):
        _measure_publish(count)
    _measure_diff()
    _measure_branches()


def _measure_publish(files: int) -> None:
    lake = icefield.connect("memory:", properties={"cache.memory-max-bytes": "0"})
    store = CountingStore(lake.backend.store)
    lake.backend = lake.backend.on(store)
    table = lake.create_table("a.t", SCHEMA, partition_by=["day(ts)"])
    for number in range(max(1, files // PER_COMMIT)):
        _append(table, f"main{number}", PER_COMMIT)
    table.create_branch("adds")
    _append(table.at("adds"), "adds", BRANCH_FILES, "adds")
    table.create_branch("removes")
    table.at("removes").delete_files([f"{table.location}/data/main0-{n}.parquet" for n in range(BRANCH_FILES)])
    _append(table, "later", PER_COMMIT)
    for branch in ("adds", "removes"):

        def publish(name: str = branch) -> None:
            store.read_bytes.clear()
            store.written.clear()
            table.publish(name)

        seconds = _median(publish, lambda: table.rollback(table.history()[-2].snapshot_id))
        read, written = sum(store.read_bytes.values()), sum(store.written.values())
        print(
            f"publish a branch that {branch} {BRANCH_FILES:,} files into a main of {files:,}: {seconds:.2f} s CPU, "
            f"{len(store.read_bytes)} reads of {read / 1e6:.1f} MB, {written / 1e6:.1f} MB written"
        )


def _append(table: Table, prefix: str, count: int, ref: str = "main") -> None:
    """Commit data files that are not there."""
    rows = entries(count).drop_columns(["status", "snapshot_id"])
    paths = [f"{table.location}/data/{prefix}-{each}.parquet" for each in range(count)]
    rows = rows.set_column(rows.column_names.index("file_path"), "file_path", pa.array(paths))
    for column in ("referenced_data_file", "content_size_in_bytes"):
        rows = rows.append_column(column, pa.nulls(count, pa.string() if "file" in column else pa.int64()))
    metadata = table.metadata
    action = AppendFiles(DataFiles(rows), metadata.spec, metadata.schema, CommitTarget(ref))
    table.commit_head.commit([action])


def _measure_diff() -> None:
    with tempfile.TemporaryDirectory() as folder, icefield.connect(folder, durable=False) as lake:
        store = CountingStore(lake.backend.store)
        lake.backend = lake.backend.on(store)
        properties = {"write.merge.mode": "merge-on-read"}
        table = lake.create_table("a.t", "id long, value double", properties=properties)
        for first in range(0, ROWS, ROWS_PER_FILE):
            table.append(_rows(np.arange(first, first + ROWS_PER_FILE), 0.0))
        before = table.current_snapshot
        table.upsert(_rows(np.arange(0, UPSERTS * 10, 10), 1.0), on=["id"])
        assert before is not None
        first = before.snapshot_id

        def count() -> None:
            store.read_bytes.clear()
            found = table.diff(first)
            assert (found.rows_added, found.rows_removed) == (UPSERTS, UPSERTS)

        counts = _median(count)
        whole = _median(lambda: [table.diff(first).added().read_all(), table.diff(first).removed().read_all()])
        scan = _median(lambda: table.scan().to_arrow().read_all())
        print(
            f"diff of {ROWS:,} rows in {ROWS // ROWS_PER_FILE} files after {UPSERTS:,} upserts: counts {counts:.3f} s "
            f"CPU and {sum(store.read_bytes.values()) / 1e6:.2f} MB, with the rows {whole:.3f} s; a scan {scan:.3f} s"
        )


def _rows(ids: np.ndarray, value: float) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64()), "value": pa.array(np.full(len(ids), value))})


def _measure_branches() -> None:
    with tempfile.TemporaryDirectory() as folder, icefield.connect(folder) as lake:
        for number in range(TABLES):
            lake.create_table(f"a.t{number}", "id long").append(pa.table({"id": [number]}))
        store = CountingStore(lake.backend.store)
        lake.backend = lake.backend.on(store)
        numbers = iter(range(1_000))
        begin = perf_counter()
        seconds = _median(lambda: lake.branch(f"b{next(numbers)}"))
        elapsed = (perf_counter() - begin) / ROUNDS
        data = [each for each in store.written if not each.endswith(".metadata.json")]
        print(
            f"branch {TABLES} tables: {seconds:.2f} s CPU, {elapsed:.2f} s elapsed, {len(store.written) // ROUNDS} "
            f"metadata files of {sum(store.written.values()) / ROUNDS / 1e3:.0f} KB written, {len(data)} other files"
        )


def _median(work: Callable[[], object], undo: Callable[[], object] | None = None) -> float:
    times = []
    for number in range(ROUNDS):
        begin = process_time()
        work()
        times.append(process_time() - begin)
        if undo is not None and number < ROUNDS - 1:
            undo()
    if undo is not None:
        undo()
    return median(times)
