"""What the history of a table costs each commit, and the first read of a partition.

    python -m benchmarks metadata_size [snapshots]

1,000 commits of 50 data files each, ten commits to a partition; the data files themselves are not written. For each
setting: the metadata.json at the end, what the last commit wrote, and what a cold plan of one partition read beside the
manifests that match. Then CPU time, the best of some rounds, of one commit and of one cold plan.
"""

import struct
from collections.abc import Callable, Mapping
from time import process_time
from typing import Any

import pyarrow as pa

import icefield
from benchmarks.decode_manifest import entries
from icefield.codec.manifest.rows import DataFiles
from icefield.commit.actions.append import AppendFiles
from icefield.lake import Lake
from icefield.table.table import Table

MOST_READS, MOST_KB = 5, 16
FILES_PER_COMMIT, COMMITS_PER_DAY, FIRST_DAY, ROUNDS = 50, 10, 19_000, 5
SCHEMA = ", ".join(["ts timestamp", *(f"c{i} {'long' if (i - 1) % 3 else 'string'}" for i in range(2, 21))])
SETTINGS: Mapping[str, Mapping[str, str]] = {
    "not compressed, as Iceberg does": {"write.metadata.compression-codec": "none"},
    "by default": {},
    "at most 100 snapshots": {"icefield.history.max-snapshots": "100"},
}


class CountingStore:
    """Passes everything on, and counts the files and bytes that are read and written."""

    def __init__(self, real: Any) -> None:
        self.real = real
        self.read_bytes: dict[str, int] = {}
        self.written: dict[str, int] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self.real, name)

    def read(self, location: str) -> bytes:
        data: bytes = self.real.read(location)
        self.read_bytes[location] = self.read_bytes.get(location, 0) + len(data)
        return data

    def put_new(self, location: str, data: bytes) -> None:
        self.real.put_new(location, data)
        self.written[location] = len(data)


def run(snapshots: int = 1_000) -> None:
    """Print sizes, reads and CPU time by setting."""
    print(f"{snapshots:,} commits of {FILES_PER_COMMIT} files (bar of metadata.json by default: 100 KB)")
    for name, properties in SETTINGS.items():
        with icefield.connect("memory:", properties={"cache.memory-max-bytes": "0"}) as lake:
            store = CountingStore(lake.backend.store)
            lake.backend = lake.backend.on(store)
            table = lake.create_table("a.t", SCHEMA, partition_by=["day(ts)"], properties=properties)
            for number in range(snapshots):
                _append(table, number)
            _report(name, lake, store, snapshots)


def _append(table: Table, number: int) -> None:
    """Commit data files that are not there: all in the partition of one day."""
    rows = entries(FILES_PER_COMMIT).drop_columns(["status", "snapshot_id"])
    day = FIRST_DAY + number // COMMITS_PER_DAY
    paths = [f"memory://w/a/t/data/{number}-{each}.parquet" for each in range(FILES_PER_COMMIT)]
    bound = struct.pack("<q", day * 86_400_000_000)
    columns = {
        "file_path": pa.array(paths),
        "partition.1000": pa.array([day] * FILES_PER_COMMIT, pa.int32()).view(pa.date32()),
        "lower_bounds": _with_bound(rows["lower_bounds"], bound),
        "upper_bounds": _with_bound(rows["upper_bounds"], bound),
    }
    for column, values in columns.items():
        rows = rows.set_column(rows.column_names.index(column), column, values)
    for column in ("referenced_data_file", "content_size_in_bytes"):
        rows = rows.append_column(column, pa.nulls(FILES_PER_COMMIT, pa.string() if "file" in column else pa.int64()))
    metadata = table.metadata
    table._head.commit([AppendFiles(DataFiles(rows), metadata.spec, metadata.schema)])  # noqa: SLF001


def _with_bound(bounds: pa.ChunkedArray, first: bytes) -> pa.Array:
    return pa.array([[(1, first), *each[1:]] for each in bounds.to_pylist()], bounds.type)


def _report(name: str, lake: Lake, store: CountingStore, snapshots: int) -> None:
    table = lake.table("a.t")
    size = store.real.size(table.metadata_location)
    commit_ms = _best(lambda: _append(lake.table("a.t"), snapshots))
    store.written.clear()
    _append(table, snapshots)
    written = sum(store.written.values())
    print(f"{name}: metadata.json {size / 1e3:,.1f} KB, {len(table.metadata.snapshots):,} snapshots")
    print(f"    a commit writes {written / 1e3:,.1f} KB in {len(store.written)} files, {commit_ms:.1f} ms CPU")
    day = FIRST_DAY + snapshots // COMMITS_PER_DAY // 2
    where = f"ts >= timestamp '{_date(day)} 00:00:00' and ts < timestamp '{_date(day + 1)} 00:00:00'"
    plan_ms = _best(lambda: lake.table("a.t").scan(where).files())
    store.read_bytes.clear()
    files = lake.table("a.t").scan(where).files()
    manifests = sum(size for location, size in store.read_bytes.items() if _is_manifest(location))
    others = {location: size for location, size in store.read_bytes.items() if not _is_manifest(location)}
    print(
        f"    a cold plan of one partition ({len(files):,} files): {len(store.read_bytes)} reads (bar {MOST_READS}),"
        f" {sum(others.values()) / 1e3:,.1f} KB (bar {MOST_KB}) beside {manifests / 1e3:,.1f} KB of manifests,"
        f" {plan_ms:.1f} ms CPU"
    )


def _is_manifest(location: str) -> bool:
    name = location.rsplit("/", 1)[-1]
    return name.endswith(".avro") and not name.startswith("snap-")


def _date(day: int) -> str:
    return str(pa.scalar(day, pa.int32()).cast(pa.date32()).as_py())


def _best(work: Callable[[], object]) -> float:
    best = float("inf")
    for _ in range(ROUNDS):
        begin = process_time()
        work()
        best = min(best, process_time() - begin)
    return best * 1e3
