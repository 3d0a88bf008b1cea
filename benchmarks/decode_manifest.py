"""Decode manifests with statistics of 20 columns, icefield against PyIceberg in one run; then write them.

    python benchmarks/decode_manifest.py [entries] [rounds]

CPU time of the process, the best of some alternating rounds. PyIceberg's `fetch_manifest_entry` returns all fields;
icefield decodes the columns needed for a plan without statistics, with those of one column, with those of all columns,
and for a rewrite of all entries; the first of these also with the kernels in plain Python. Snappy is omitted, because
PyIceberg needs another package for it. Then what a process takes that decodes one manifest: time from its start to its
end, CPU time, and peak memory as reported by Linux, beside that of a process that only imports the same modules.
"""

import struct
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import perf_counter, process_time

import pyarrow as pa
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.manifest import ManifestFile

from icefield.codec.avro import engine as avro_engine
from icefield.codec.avro.compression import DEFLATE, NULL, ZSTANDARD
from icefield.codec.avro.engine import Engine, PlainEngine
from icefield.codec.manifest.columns import ALL, PLAN
from icefield.codec.manifest.decode import decode_manifest, decode_manifests
from icefield.codec.manifest.encode import encode_manifest
from icefield.codec.manifest.header import ManifestHeader
from icefield.codec.manifest.list import (
    ManifestListHeader,
    decode_manifest_list,
    encode_manifest_list,
    splice_manifest_list,
)
from icefield.codec.manifest.list_schema import MANIFEST_LIST_ARROW_SCHEMA
from icefield.codec.manifest.rewrite import ManifestSource, rewrite_manifests
from icefield.codec.manifest.rows import ManifestEntries, Manifests
from icefield.codec.manifest.schema import BOUNDS, COUNTS, EXISTING, LONGS
from icefield.types.datatypes import DateType, NestedField

COLUMNS = 20
PARTITION = (NestedField(1000, "ts_day", DateType()),)
HEADER = ManifestHeader(
    schema_json='{"type":"struct","schema-id":0,"fields":[{"id":1,"name":"ts","required":false,"type":"timestamp"}]}',
    partition_spec_json='[{"name":"ts_day","transform":"day","source-id":1,"field-id":1000}]',
    schema_id=0,
)
SMALL_FILES, SMALL_ENTRIES = 200, 12
IO = PyArrowFileIO()
SLOW_ROUNDS = 2
_PROCESS = """
import re, sys
from pathlib import Path
from time import process_time
from icefield.codec.manifest.columns import PLAN
from icefield.codec.manifest.decode import decode_manifest
if len(sys.argv) > 1:
    decode_manifest(Path(sys.argv[1]).read_bytes(), sys.argv[1], PLAN)
# Not getrusage: after a fork its peak begins with that of the parent.
print(int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) / 1024, process_time())
"""


def entries(count: int) -> pa.Table:
    """Return entries with realistic values, the same in each run."""
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


def main(count: int = 10_000, rounds: int = 10) -> None:
    _say(f"kernel: {avro_engine.chosen().description}\n")
    table = entries(count)
    for codec in (NULL, DEFLATE, ZSTANDARD):
        data = encode_manifest(ManifestEntries.trusted(table), HEADER, PARTITION, "benchmark", codec)
        with tempfile.TemporaryDirectory() as directory:
            _report(codec, data, count, _measure(data, Path(directory) / "manifest.avro", rounds))
    with tempfile.TemporaryDirectory() as directory:
        _measure_small(table, Path(directory), rounds)
    _measure_writing(table, rounds)
    _measure_processes(table, rounds)


def _measure_processes(table: pa.Table, rounds: int) -> None:
    _say(f"a process that decodes {table.num_rows} entries, deflate, and one that only imports\n")
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "manifest.avro"
        path.write_bytes(encode_manifest(ManifestEntries.trusted(table), HEADER, PARTITION, "benchmark"))
        for name, arguments in {"imports": [], "decodes": [str(path)]}.items():
            runs = [_process(arguments) for _ in range(rounds)]
            wall, cpu, peak = (min(column) for column in zip(*runs, strict=True))
            _say(f"  {name:20} {wall * 1e3:8.0f} ms  {cpu * 1e3:8.0f} ms of CPU  {peak:8.1f} MiB\n")


def _process(arguments: list[str]) -> tuple[float, float, float]:
    begin = perf_counter()
    done = subprocess.run([sys.executable, "-c", _PROCESS, *arguments], capture_output=True, text=True, check=True)
    wall = perf_counter() - begin
    peak, cpu = map(float, done.stdout.split())
    return wall, cpu, peak


def _measure_small(table: pa.Table, directory: Path, rounds: int) -> None:
    for i in range(SMALL_FILES):
        rows = table.slice(i * SMALL_ENTRIES % table.num_rows, SMALL_ENTRIES)
        (directory / str(i)).write_bytes(encode_manifest(ManifestEntries.trusted(rows), HEADER, PARTITION, str(i)))
    paths = sorted(directory.iterdir())
    want = PLAN.with_statistics([1])

    def together() -> object:
        return decode_manifests([(str(path), path.read_bytes()) for path in paths], want)

    best = {
        "pyiceberg": _best(lambda: [_pyiceberg(path)() for path in paths], 2),
        "alone": _best(lambda: [decode_manifest(path.read_bytes(), str(path), want) for path in paths], rounds),
        "together": _best(together, rounds),
    }
    _say(f"{SMALL_FILES} manifests of {SMALL_ENTRIES} entries, deflate, bounds of 1\n")
    for name, seconds in best.items():
        each = seconds / SMALL_FILES * 1e6
        _say(f"  {name:20} {each:8.0f} us per manifest {best['pyiceberg'] / seconds:24.1f}x\n")


def _measure_writing(table: pa.Table, rounds: int) -> None:
    data = encode_manifest(ManifestEntries.trusted(table), HEADER, PARTITION, "old")
    listed = {"manifest_path": "old", "sequence_number": 7, "added_snapshot_id": 70, "content": 0}
    listed |= {"manifest_length": 1, "min_sequence_number": 7, "partition_spec_id": 0}
    listed |= {f"{kind}_{what}_count": 1 for kind in ("added", "existing", "deleted") for what in ("files", "rows")}
    manifest = pa.Table.from_pylist([listed], MANIFEST_LIST_ARROW_SCHEMA)
    source = ManifestSource(
        "old", data, Manifests.trusted(manifest), pa.repeat(pa.scalar(EXISTING, pa.int8()), table.num_rows)
    )
    rows = pa.Table.from_pylist([listed | {"manifest_path": _path(i, i)} for i in range(10_000)], manifest.schema)
    head = ManifestListHeader(2, 1, 8)
    old_list = encode_manifest_list(Manifests.trusted(rows), head, "l0")
    work: dict[str, Callable[[], object]] = {
        f"encode {table.num_rows} entries": lambda: encode_manifest(
            ManifestEntries.trusted(table), HEADER, PARTITION, "new"
        ),
        f"rewrite {table.num_rows} entries": lambda: rewrite_manifests([source], HEADER, PARTITION, 99, "new"),
        "encode 12 entries": lambda: encode_manifest(
            ManifestEntries.trusted(table.slice(0, 12)), HEADER, PARTITION, "new"
        ),
        "decode list of 10000": lambda: decode_manifest_list(old_list, "l0"),
        "encode list of 10000": lambda: encode_manifest_list(Manifests.trusted(rows), head, "l1"),
        "splice list of 10000": lambda: splice_manifest_list(old_list, "l0", Manifests.trusted(manifest), head, "l1"),
    }
    _say("writing, deflate\n")
    for name, run in work.items():
        _say(f"  {name:22} {_best(run, rounds) * 1e3:8.2f} ms\n")


def _pyiceberg(path: Path) -> Callable[[], object]:
    manifest = ManifestFile.from_args(
        _table_format_version=2,
        manifest_path=str(path),
        manifest_length=path.stat().st_size,
        partition_spec_id=0,
        content=0,
        sequence_number=1,
        min_sequence_number=1,
        added_snapshot_id=1,
    )
    return lambda: manifest.fetch_manifest_entry(IO, discard_deleted=False)


def _measure(data: bytes, path: Path, rounds: int) -> dict[str, float]:
    path.write_bytes(data)
    work: dict[str, Callable[[], object]] = {
        "pyiceberg": _pyiceberg(path),
        "plan": lambda: decode_manifest(path.read_bytes(), str(path), PLAN),
        "plan, bounds of 1": lambda: decode_manifest(path.read_bytes(), str(path), PLAN.with_statistics([1])),
        "plan, bounds of 20": lambda: decode_manifest(path.read_bytes(), str(path), PLAN.with_statistics(range(1, 21))),
        "all": lambda: decode_manifest(path.read_bytes(), str(path), ALL),
    }
    slow = {"pyiceberg"}
    if not isinstance(avro_engine.current_engine(), PlainEngine):
        slow.add("plan, plain Python")
        work["plan, plain Python"] = lambda: _with(PlainEngine(), work["plan"])
    for name in work.keys() - slow:
        work[name]()
    best = dict.fromkeys(work, float("inf"))
    for slot in range(rounds):
        for name, run in work.items():
            if name not in slow or slot < SLOW_ROUNDS:
                best[name] = min(best[name], _best(run, 1))
    return best


def _with(engine: Engine, run: Callable[[], object]) -> object:
    before = avro_engine.current_engine
    avro_engine.current_engine = lambda: engine
    try:
        return run()
    finally:
        avro_engine.current_engine = before


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
    main(*arguments)
