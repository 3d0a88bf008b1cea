"""Decode one manifest of 10,000 entries with 20 columns of statistics: icefield against PyIceberg, in one run.

    python benchmarks/decode_manifest.py [entries] [rounds]

CPU time of the process, the best of some rounds that take turns. PyIceberg's `fetch_manifest_entry` gives all fields;
icefield gives the columns that a plan without statistics, with those of one column, with those of all columns, and a
rewrite of all entries need. Snappy is left out, for PyIceberg needs another package for it.
"""

import struct
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import process_time

import pyarrow as pa
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.manifest import ManifestFile

from icefield.codec.avro_codecs import DEFLATE, NULL, ZSTANDARD
from icefield.codec.manifest import decode_manifest, decode_manifests
from icefield.codec.manifest_columns import ALL, PLAN
from icefield.codec.manifest_encode import encode_manifest
from icefield.codec.manifest_header import ManifestHeader
from icefield.codec.manifest_schema import BOUNDS, COUNTS, LONGS
from icefield.types.datatypes import DateType, NestedField

COLUMNS = 20
PARTITION = (NestedField(1000, "ts_day", DateType()),)
HEADER = ManifestHeader(
    schema_json='{"type":"struct","schema-id":0,"fields":[{"id":1,"name":"ts","required":false,"type":"timestamp"}]}',
    partition_spec_json='[{"name":"ts_day","transform":"day","source-id":1,"field-id":1000}]',
    schema_id=0,
)
SMALL_FILES, SMALL_ENTRIES = 200, 12


def entries(count: int) -> pa.Table:
    """Make entries whose values are as varied as real ones, the same in each run."""
    noise = [(i * 2654435761) % (1 << 32) for i in range(count + COLUMNS)]

    def column(kind: pa.DataType, value: Callable[[int, int], object]) -> pa.Array:
        return pa.array([[(c + 1, value(i, c)) for c in range(COLUMNS)] for i in range(count)], kind)

    def bound(i: int, c: int, step: int) -> bytes:
        return struct.pack("<q", i * 1000 + step + c) if c % 3 else b"prefix-%016d" % (i * 7 + c + step)

    return pa.table(
        {
            "status": pa.repeat(pa.scalar(1, pa.int32()), count),
            "snapshot_id": pa.repeat(pa.scalar(3051729675574597004), count),
            "content": pa.repeat(pa.scalar(0, pa.int32()), count),
            "file_path": pa.array([_path(i, noise[i]) for i in range(count)]),
            "file_format": pa.repeat("PARQUET", count),
            "partition.1000": pa.array([19000 + i % 30 for i in range(count)], pa.int32()).view(pa.date32()),
            "record_count": pa.array([100_000 + noise[i] % 900_000 for i in range(count)]),
            "file_size_in_bytes": pa.array([10**6 + noise[i] for i in range(count)]),
            "column_sizes": column(COUNTS, lambda i, c: noise[i + c] % 200_000),
            "value_counts": column(COUNTS, lambda i, _c: 100_000 + noise[i] % 900_000),
            "null_value_counts": column(COUNTS, lambda i, c: noise[i + c] % 3),
            "nan_value_counts": column(COUNTS, lambda _i, _c: 0),
            "lower_bounds": column(BOUNDS, lambda i, c: bound(i, c, 0)),
            "upper_bounds": column(BOUNDS, lambda i, c: bound(i, c, 999)),
            "split_offsets": pa.array([[4, 134217728]] * count, LONGS),
            "sort_order_id": pa.repeat(pa.scalar(0, pa.int32()), count),
        }
    )


def main(count: int, rounds: int) -> None:
    table = entries(count)
    for codec in (NULL, DEFLATE, ZSTANDARD):
        data = encode_manifest(table, HEADER, PARTITION, "benchmark", codec)
        with tempfile.TemporaryDirectory() as directory:
            _report(codec, data, count, _measure(data, Path(directory) / "manifest.avro", rounds))
    small = [
        (str(i), encode_manifest(table.slice(i * SMALL_ENTRIES, SMALL_ENTRIES), HEADER, PARTITION, str(i)))
        for i in range(SMALL_FILES)
    ]
    want = PLAN.with_statistics([1])
    alone = _best(lambda: [decode_manifest(data, location, want) for location, data in small], rounds)
    together = _best(lambda: decode_manifests(small, want), rounds)
    _say(f"{SMALL_FILES} manifests of {SMALL_ENTRIES} entries, each: alone {alone / SMALL_FILES * 1e6:.0f} us, ")
    _say(f"together {together / SMALL_FILES * 1e6:.0f} us\n")


def _measure(data: bytes, path: Path, rounds: int) -> dict[str, float]:
    path.write_bytes(data)
    io = PyArrowFileIO()
    manifest = ManifestFile.from_args(
        _table_format_version=2,
        manifest_path=str(path),
        manifest_length=len(data),
        partition_spec_id=0,
        content=0,
        sequence_number=1,
        min_sequence_number=1,
        added_snapshot_id=1,
    )
    work: dict[str, Callable[[], object]] = {
        "pyiceberg": lambda: manifest.fetch_manifest_entry(io, discard_deleted=False),
        "plan": lambda: decode_manifest(path.read_bytes(), str(path), PLAN),
        "plan, bounds of 1": lambda: decode_manifest(path.read_bytes(), str(path), PLAN.with_statistics([1])),
        "plan, bounds of 20": lambda: decode_manifest(path.read_bytes(), str(path), PLAN.with_statistics(range(1, 21))),
        "all": lambda: decode_manifest(path.read_bytes(), str(path), ALL),
    }
    for name in work:
        if name != "pyiceberg":
            work[name]()
    best = dict.fromkeys(work, float("inf"))
    for turn in range(rounds):
        for name, run in work.items():
            if name != "pyiceberg" or turn < 2:
                best[name] = min(best[name], _best(run, 1))
    return best


def _best(run: Callable[[], object], rounds: int) -> float:
    best = float("inf")
    for _ in range(rounds):
        begin = process_time()
        run()
        best = min(best, process_time() - begin)
    return best


def _report(codec: str, data: bytes, count: int, best: dict[str, float]) -> None:
    _say(f"{codec}: {len(data) / count:.0f} bytes per entry\n")
    for name, seconds in best.items():
        ratio = best["pyiceberg"] / seconds
        _say(f"  {name:20} {seconds * 1e3:8.1f} ms  {count / seconds:10,.0f} entries/s  {ratio:5.1f}x\n")


def _path(index: int, noise: int) -> str:
    day = index % 28 + 1
    return (
        f"s3://bucket/warehouse/shop.db/orders/data/ts_day=2024-01-{day:02d}/00000-{index}-{noise:032x}-00001.parquet"
    )


def _say(text: str) -> None:
    sys.stdout.write(text)


if __name__ == "__main__":
    arguments = [int(argument) for argument in sys.argv[1:]]
    main(*(arguments + [10_000, 10][len(arguments) :]))
