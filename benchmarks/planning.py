"""Plan scans of tables from a dozen files to a million: icefield against PyIceberg, in one run.

    python -m benchmarks planning [most files]

CPU time of the process over all threads, the best of some rounds; manifests are deflate, with 20 columns of statistics.
Cold is without the manifest cache; PyIceberg's own cache of manifest lists is emptied
before each round. Beyond 100,000 files PyIceberg is not run but extrapolated, which is marked with ~.
Peak memory is that of a separate process, with interpreter and libraries, as reported by Linux.
"""

import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count, repeat
from pathlib import Path
from statistics import median
from time import process_time

from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.manifest import clear_manifest_cache
from pyiceberg.table import StaticTable

import icefield
from benchmarks.planning_tables import NAME, WHERE, Shape, make_table
from icefield.lake import Lake

ENTRIES = 10_000
MOST_FOR_PYICEBERG = 100_000
NO_CACHE = {"cache.memory-max-bytes": "0"}
_PEAK = """
import re, sys
from pathlib import Path
import icefield
with icefield.connect(sys.argv[1]) as lake:
    lake.table(sys.argv[2]).scan(where=sys.argv[3] or None).files()
# Not getrusage: after a fork its peak begins with that of the parent.
print(int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) / 1024)
"""


def run(most_files: int = 1_000_000) -> None:
    """Print each result with its target."""
    _growth(most_files)
    _small_manifests()
    _dozen_files()
    _deletes()
    _memory(most_files)


def _growth(most_files: int) -> None:
    _say("plan with a filter on a column that is not partitioned (cold at least 20x, warm 200x)")
    per_file = 0.0
    for files in (size for size in (1_000, 10_000, 100_000, 1_000_000) if size <= most_files):
        shape = Shape(max(1, files // ENTRIES), min(files, ENTRIES))
        with _table(shape) as (folder, location):
            cold, warm, disk = (_ours(folder, p, WHERE) for p in (NO_CACHE, {}, {"cache.dir": f"{folder}/cache"}))
            if files <= MOST_FOR_PYICEBERG:
                theirs = _best(lambda: _theirs(location, WHERE), 2)
                per_file, mark = theirs / files, ""
            else:
                theirs, mark = per_file * files, "~"
        _say(f"  {files:>9,} files  pyiceberg {mark}{theirs:8.3f} s")
        for name, seconds in (("cold", cold), ("warm in memory", warm), ("warm on disk", disk)):
            each = seconds / files * 1e6
            _say(f"    {name:18} {seconds * 1e3:9.1f} ms {each:8.2f} us/file  {mark}{theirs / seconds:6.0f}x")


def _small_manifests() -> None:
    for shape, bar in ((Shape(10_000, 12), "at least 20x"), (Shape(1_000, 1), "under 0.3 s")):
        with _table(shape) as (folder, location):
            ours = _ours(folder, NO_CACHE, WHERE)
            fresh = _in_new_process(folder)
            theirs = _best(lambda: _theirs(location, WHERE), 1)
        _say(f"{shape.manifests:,} manifests of {shape.entries}, cold ({bar})")
        _say(f"    icefield {ours:.3f} s  pyiceberg {theirs:.3f} s  {theirs / ours:.0f}x")
        _say(f"    icefield, as the first plan of a process: {fresh:.3f} s")


def _dozen_files() -> None:
    with _table(Shape(1, 12)) as (folder, _):
        catalog = SqlCatalog("icefield", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{folder}")

        def theirs(where: str, *, cold: bool = False) -> object:
            if cold:
                clear_manifest_cache()
            return list(catalog.load_table(NAME).scan(row_filter=where).plan_files())

        with _lake(folder, NO_CACHE) as cold, _lake(folder, {}) as warm:
            others = _questions("c3 = 5500")
            seconds = _medians(
                {
                    "pyiceberg, cold": lambda: theirs("c3 = 5500", cold=True),
                    "pyiceberg, warm": lambda: theirs("c3 = 5500"),
                    "cold": lambda: _plan(cold, "c3 = 5500"),
                    "warm, a new filter": lambda: _plan(warm, next(others)),
                    "warm, the same": lambda: _plan(warm, "c3 = 5500"),
                }
            )
        first = _in_new_process(folder, "c3 = 5500")
    _say("12 files: load from the catalog and plan (at least 5x); medians, in turn")
    for name in ("cold", "warm, a new filter", "warm, the same"):
        them = seconds["pyiceberg, cold" if name == "cold" else "pyiceberg, warm"]
        mine = seconds[name]
        _say(f"    {name:18} {mine * 1e3:6.2f} ms  pyiceberg {them * 1e3:6.2f} ms  {them / mine:.1f}x")
    _say(f"    icefield, as the first plan of a process: {first * 1e3:.1f} ms")


def _deletes() -> None:
    seconds = {}
    for with_vectors in (False, True):
        with _table(Shape(10, ENTRIES, with_vectors)) as (folder, _):
            seconds[with_vectors] = _ours(folder, NO_CACHE, None)
    _say("100,000 files, no filter, and the same with 100,000 deletion vectors (at most 3x)")
    _say(f"    {seconds[False]:.3f} s, {seconds[True]:.3f} s: {seconds[True] / seconds[False]:.1f}x")


def _memory(files: int) -> None:
    _say(f"peak memory of a process that plans {files:,} files (under 1,500 MB, and 300 MB with a selective filter)")
    with _table(Shape(max(1, files // ENTRIES), ENTRIES)) as (folder, _), _table(Shape(1, 12)) as (small, _):
        for name, place, where in (("12 files", small, ""), ("no filter", folder, ""), ("filter", folder, WHERE)):
            _say(f"    {name:10} {float(_child(_PEAK, str(place), NAME, where)):6.0f} MB")


@contextmanager
def _table(shape: Shape) -> Iterator[tuple[Path, str]]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        yield folder, make_table(folder, shape)


def _lake(folder: Path, properties: dict[str, str]) -> Lake:
    return icefield.connect(folder, durable=False, properties=properties)


def _ours(folder: Path, properties: dict[str, str], where: str | None, rounds: int = 4) -> float:
    if "cache.dir" in properties:
        properties = NO_CACHE | properties
    with _lake(folder, properties) as lake:
        questions = _questions(where)
        for _ in range(2):
            _plan(lake, next(questions))  # the cache keeps a manifest on its second use
        return _best(lambda: _plan(lake, next(questions)), rounds)


def _questions(where: str | None) -> Iterator[str | None]:
    """Yield different filters that choose the same files, so that the plan cache is not measured."""
    if where is None:
        return repeat(None)
    column, _, value = where.rpartition(" ")
    return (f"{column} {number}" for number in count(int(value)))


def _plan(lake: Lake, where: str | None) -> int:
    return int(lake.table(NAME).scan(where=where).files().num_rows)


def _theirs(location: str, where: str) -> int:
    clear_manifest_cache()
    return len(list(StaticTable.from_metadata(location).scan(row_filter=where).plan_files()))


def _in_new_process(folder: Path, where: str = WHERE) -> float:
    code = (
        "import sys, time, icefield\nwith icefield.connect(sys.argv[1]) as lake:\n"
        "    begin = time.process_time()\n    lake.table(sys.argv[2]).scan(where=sys.argv[3]).files()\n"
        "    print(time.process_time() - begin)"
    )
    return float(_child(code, str(folder), NAME, where))


def _child(code: str, *arguments: str) -> str:
    command = [sys.executable, "-c", code, *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def _medians(works: dict[str, Callable[[], object]], rounds: int = 60) -> dict[str, float]:
    """Alternate between the pieces of work, so that other load on the machine affects all alike."""
    taken: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(rounds):
        for name, work in works.items():
            taken[name].append(_best(work, 1))
    return {name: median(each[3:]) for name, each in taken.items()}


def _best(work: Callable[[], object], rounds: int) -> float:
    best = float("inf")
    for _ in range(rounds):
        begin = process_time()
        work()
        best = min(best, process_time() - begin)
    return best


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()
