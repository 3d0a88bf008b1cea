"""The cache of manifests: whatever is in it, and whatever becomes of it, plans are the same."""

import multiprocessing
import pickle
import random as randoms
import threading
from pathlib import Path
from random import Random

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.effort import effort, sample
from tests.histories.filters import draw_filter
from tests.histories.history import History

import icefield
from icefield.ambient import SeededAmbient
from icefield.cache.disk import SidecarDirectory
from icefield.cache.manifests import Key, ManifestCache, is_cacheable
from icefield.cache.reading import ReadContext
from icefield.codec.manifest.columns import ALL, ManifestColumns
from icefield.codec.manifest.rows import ManifestEntries
from icefield.errors import InvalidInput
from icefield.expr.bind.bind import bind
from icefield.expr.parse.ast import Predicate
from icefield.lake import Lake
from icefield.plan.entries import LIVE, load_entries
from icefield.plan.manifest_list import load_manifests
from icefield.plan.metrics import ScanMetrics
from icefield.plan.plan import plan_scan
from icefield.plan.versions import resolve_version
from icefield.storage.memory import MemoryStore
from icefield.table.table import Table

Planned = tuple[list[dict[str, object]], ScanMetrics]
COLUMNS = ManifestColumns(("status", "snapshot_id", "sequence_number", "file_path", "file_format", "record_count"))
ROWS = pa.table({"id": pa.array(range(10), pa.int64()), "name": [f"n{i}" for i in range(10)]})


class CountingStore(MemoryStore):
    """Counts the reads of manifests."""

    def __init__(self) -> None:
        super().__init__()
        self.manifests_read = 0

    def read(self, location: str) -> bytes:
        self.manifests_read += location.endswith(".avro") and "/snap-" not in location
        return super().read(location)


def plans(context: ReadContext, table: Table, filters: list[Predicate]) -> list[Planned]:
    """Plan every version with every filter."""
    found = []
    for snapshot in table.metadata.snapshots:
        version = resolve_version(table.metadata, snapshot.snapshot_id)
        for where in filters:
            try:
                bound = bind(where, version.schema)
            except icefield.errors.InvalidFilter:
                continue  # older versions lack columns
            plan = plan_scan(context, table.metadata, version, bound)
            found.append((plan.files.to_pylist(), plan.metrics))
    return found


def sidecars(folder: Path, scope: str = "lake", max_bytes: int = 1 << 30) -> SidecarDirectory:
    return SidecarDirectory(folder, scope, max_bytes, smallest_manifest_bytes=0)


def held_bytes(context: ReadContext) -> int:
    assert context.cache is not None
    return context.cache.held_bytes


def files_in(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if path.stat().st_size)


def small_table(lake: Lake) -> Table:
    table = lake.create_table("a.t", "id long, name string", partition_by=["bucket(3, id)"])
    for _ in range(3):
        table.append(ROWS)
    return table


FILTERS = ["id = 3", "name = 'n4'", "id > 100"]


def all_plans(context: ReadContext, table: Table) -> list[Planned]:
    found = []
    for text in FILTERS:
        bound = bind(text, table.metadata.schema)
        plan = plan_scan(context, table.metadata, resolve_version(table.metadata, None), bound)
        found.append((plan.files.to_pylist(), plan.metrics))
    return found


@pytest.mark.slow
@effort(8)
@given(seed=st.integers(0, 2**32), max_bytes=st.sampled_from([0, 3_000, 1 << 30]), on_disk=st.booleans())
def test_plans_of_random_histories_are_the_same_with_and_without_a_cache(
    tmp_path_factory: pytest.TempPathFactory, seed: int, max_bytes: int, *, on_disk: bool
) -> None:
    folder = tmp_path_factory.mktemp("cache")
    with icefield.connect("memory:", ambient=SeededAmbient(7), properties={"cache.memory-max-bytes": "0"}) as lake:
        history = History(Random(seed), lake, "a.t")
        for _ in range(6):
            history.step()
        filters = [draw_filter(Random(seed + i), history.model) for i in range(3)]
        table = lake.table("a.t")
        expected = plans(ReadContext(lake.store), table, filters)
        cached = ReadContext(lake.store, ManifestCache(max_bytes, sidecars(folder) if on_disk else None))
        for turn in range(4):
            assert plans(cached, table, filters) == expected
            if turn == 2 and on_disk:
                _damage(folder, Random(seed))
        assert held_bytes(cached) <= max_bytes


def _damage(folder: Path, random: randoms.Random) -> None:
    """Do to each file one of the things that happen to files."""
    for path in files_in(folder):
        data = bytearray(path.read_bytes())
        match random.randrange(5):
            case 0:
                path.unlink()
            case 1:
                path.write_bytes(data[: random.randrange(len(data))])
            case 2:
                data[random.randrange(len(data))] ^= 1 << random.randrange(8)
                path.write_bytes(data)
            case 3:
                path.write_bytes(random.choice(files_in(folder)).read_bytes())


def test_a_manifest_is_kept_on_its_second_use_and_then_read_no_more(memory_lake: Lake) -> None:
    table = small_table(memory_lake)
    counting = CountingStore()
    for file in memory_lake.store.list("memory://lake"):
        counting.put_new(file.location, memory_lake.store.read(file.location))
    context = ReadContext(counting, ManifestCache())
    all_plans(context, table)
    before = counting.manifests_read
    assert held_bytes(context) > 0
    expected = all_plans(ReadContext(memory_lake.store), table)
    assert all_plans(context, table) == expected
    assert all_plans(context, table) == expected
    # The first turn kept the columns of the second and third filter, and the second turn those of the first.
    assert counting.manifests_read <= before + 3


def test_nothing_is_kept_of_what_is_planned_once(memory_lake: Lake) -> None:
    table = small_table(memory_lake)
    context = ReadContext(memory_lake.store, ManifestCache())
    plan_scan(context, table.metadata, resolve_version(table.metadata, None), bind("id = 3", table.metadata.schema))
    assert held_bytes(context) == 0


def test_memory_is_bounded_and_the_least_recently_used_goes_first() -> None:
    columns = pa.table({name: pa.array(range(100), pa.int64()) for name in ("status", "snapshot_id")})
    cache = ManifestCache(max_bytes=2 * columns.nbytes)
    keys = [Key(f"m{i}", 1) for i in range(3)]
    want = ManifestColumns(("status",))
    cache.keep(keys[0], ManifestEntries(columns))
    cache.keep(keys[1], ManifestEntries(columns))
    assert cache.find(keys[0], want) is not None
    cache.keep(keys[2], ManifestEntries(columns))
    assert [cache.holds(key) for key in keys] == [True, False, True]
    assert cache.held_bytes == 2 * columns.nbytes


def test_columns_that_were_asked_for_later_join_those_that_are_there() -> None:
    cache = ManifestCache()
    key = Key("m", 1)
    cache.keep(key, ManifestEntries(pa.table({"status": [1]})))
    cache.keep(key, ManifestEntries(pa.table({"snapshot_id": [7]})))
    assert cache.find(key, ManifestColumns(("status", "snapshot_id"))) is not None
    assert cache.find(key, ManifestColumns(("status", "record_count"))) is None


@pytest.mark.parametrize("other", [Key("m", 2), Key("n", 1)], ids=["length", "location"])
def test_a_file_of_another_length_or_location_is_another_manifest(tmp_path: Path, other: Key) -> None:
    directory = sidecars(tmp_path)
    cache = ManifestCache(1 << 20, directory)
    cache.keep(Key("m", 1), ManifestEntries(pa.table({"status": [1]})))
    want = ManifestColumns(("status",))
    assert cache.find(Key("m", 1), want) is not None
    assert cache.find(other, want) is None
    # Even under the name of the other: the head says which it is.
    directory._path(Key("m", 1)).rename(directory._path(other))
    assert directory.find(other) is None


def test_lakes_that_share_a_directory_do_not_share_manifests(tmp_path: Path) -> None:
    sidecars(tmp_path, "one").keep(Key("m", 1), ManifestEntries(pa.table({"status": [1]})))
    assert sidecars(tmp_path, "one").find(Key("m", 1)) is not None
    assert sidecars(tmp_path, "two").find(Key("m", 1)) is None


def test_every_damaged_byte_of_a_file_is_found_out(tmp_path: Path) -> None:
    directory, key = sidecars(tmp_path), Key("m", 1)
    table = pa.table({"status": [1, 1], "file_path": ["a", "b"], "lower.3": [b"x", b"y"]})
    directory.keep(key, ManifestEntries(table))
    (path,) = files_in(tmp_path)
    data = path.read_bytes()
    for at in sample(range(len(data)), len(data)):
        path.write_bytes(data[:at] + bytes([data[at] ^ 0x10]) + data[at + 1 :])
        found = directory.find(key)
        assert found is None or found.all_columns() is None, at
    for size in sample(range(len(data)), len(data)):
        path.write_bytes(data[:size])
        found = directory.find(key)
        assert found is None or found.all_columns() is None, size
    directory.keep(key, ManifestEntries(table))
    found = directory.find(key)
    assert found is not None
    assert (whole := found.all_columns()) is not None
    assert whole.table == table


def test_a_directory_that_is_removed_meanwhile_costs_time_alone(tmp_path: Path, memory_lake: Lake) -> None:
    table = small_table(memory_lake)
    expected = all_plans(ReadContext(memory_lake.store), table)
    folder = tmp_path / "cache"
    context = ReadContext(memory_lake.store, ManifestCache(0, sidecars(folder)))
    for _ in range(3):
        assert all_plans(context, table) == expected
    assert files_in(folder)
    for path in folder.iterdir():
        path.unlink()
    folder.rmdir()
    folder.write_text("not a directory")
    for _ in range(3):
        assert all_plans(context, table) == expected


def test_the_directory_is_bounded_and_what_is_not_of_the_cache_stays(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("keep me" * 1000)
    table = pa.table({"status": pa.array(range(1000), pa.int64())})
    directory = sidecars(tmp_path, max_bytes=20_000)
    for i in range(30):
        directory.keep(Key(f"m{i}", 1), ManifestEntries(table))
    kept = [path for path in tmp_path.iterdir() if path.name != "mine.txt"]
    assert kept
    assert sum(path.stat().st_size for path in kept) <= 20_000 * 17 // 16 + 8_000
    assert directory.find(Key("m29", 1)) is not None
    assert (tmp_path / "mine.txt").exists()


def test_small_manifests_have_no_files(tmp_path: Path) -> None:
    directory = SidecarDirectory(tmp_path, "lake")
    directory.keep(Key("m", 100), ManifestEntries(pa.table({"status": [1]})))
    assert not directory.note(Key("m", 100))
    assert list(tmp_path.iterdir()) == []


def _plan_in_process(folder: str, lake_folder: str) -> None:
    with icefield.connect(lake_folder, durable=False) as lake:
        table = lake.table("a.t")
        expected = all_plans(ReadContext(lake.store), table)
        context = ReadContext(lake.store, ManifestCache(0, sidecars(Path(folder))))
        assert all(all_plans(context, table) == expected for _ in range(5))


@pytest.mark.slow
def test_many_processes_share_a_directory(tmp_path: Path, lake: Lake) -> None:
    small_table(lake)
    context = multiprocessing.get_context("spawn")
    places = str(tmp_path / "c"), str(tmp_path / "lake")
    workers = [context.Process(target=_plan_in_process, args=places) for _ in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()  # without a limit: a busy machine takes its time to start two interpreters
    assert [worker.exitcode for worker in workers] == [0, 0]


def test_many_threads_share_a_cache(memory_lake: Lake) -> None:
    table = small_table(memory_lake)
    expected = all_plans(ReadContext(memory_lake.store), table)
    context = ReadContext(memory_lake.store, ManifestCache(max_bytes=20_000))
    wrong: list[object] = []

    def work() -> None:
        wrong.extend(1 for _ in range(10) if all_plans(context, table) != expected)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert held_bytes(context) <= 20_000


def test_what_entries_inherit_is_not_kept(memory_lake: Lake) -> None:
    table = small_table(memory_lake)
    context = ReadContext(memory_lake.store, ManifestCache())
    manifests = load_manifests(context, table.metadata.current_snapshot)
    assert manifests is not None
    for number in (5, 6, 7):
        listed = manifests.replaced({"sequence_number": pa.array([number] * manifests.num_rows)})
        entries = load_entries(context, listed, COLUMNS, LIVE)
        assert set(entries["sequence_number"].to_pylist()) == {number}


def test_whole_maps_are_decoded_and_not_kept(memory_lake: Lake) -> None:
    table = small_table(memory_lake)
    context = ReadContext(memory_lake.store, ManifestCache())
    assert not is_cacheable(ALL)
    manifests = load_manifests(context, table.metadata.current_snapshot)
    for _ in range(3):
        assert manifests is not None
        load_entries(context, manifests, ALL, LIVE)
    assert held_bytes(context) == 0


def test_in_another_process_there_is_no_cache(lake: Lake) -> None:
    assert lake.backend.reading.cache is not None
    assert pickle.loads(pickle.dumps(lake.backend.reading)).cache is None


def test_a_lake_is_told_of_its_cache_by_properties(tmp_path: Path) -> None:
    properties = {"cache.dir": str(tmp_path / "c"), "cache.max-bytes": "1000000", "cache.memory-max-bytes": "5"}
    with icefield.connect(tmp_path / "lake", durable=False, properties=properties) as lake:
        cache = lake.backend.cache
        assert cache is not None
        assert cache._max_bytes == 5
        assert isinstance(cache._sidecars, SidecarDirectory)
        assert cache._sidecars.max_bytes == 1_000_000


@pytest.mark.parametrize(
    ("target", "properties", "message"),
    [
        ("lake", {"cache.size": "5"}, "unknown cache property 'cache.size'"),
        ("lake", {"cache.max-bytes": "-5"}, "must be a number of bytes"),
        ("memory:", {"cache.dir": "c"}, "cannot be used with a lake in memory"),
    ],
)
def test_wrong_settings_are_refused(tmp_path: Path, target: str, properties: dict[str, str], message: str) -> None:
    place = target if target == "memory:" else tmp_path / target
    with pytest.raises(InvalidInput, match=message):
        icefield.connect(place, properties=properties)
