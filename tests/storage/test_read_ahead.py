"""Reading ahead: many requests in flight where each takes long, none ahead where they do not, and all within bounds."""

import pickle
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from icefield.errors import MissingFile
from icefield.storage import read_ahead
from icefield.storage.local import LocalStore
from icefield.storage.location import location_of_path
from icefield.storage.read_ahead import MOST_IN_FLIGHT, Part, ReadAhead, Wanted

PATIENCE_S = 30


class Clock:
    """A clock on which each read takes the same time, whatever the machine is busy with."""

    def __init__(self, step_s: float) -> None:
        self.step_s = step_s
        self.calls = threading.local()

    def monotonic(self) -> float:
        self.calls.now = getattr(self.calls, "now", 0.0) + self.step_s
        return float(self.calls.now)


class CountedStore:
    """Files in memory behind a network: counts what is asked for, and lets nobody go before some are waiting."""

    def __init__(self, files: dict[str, bytes], together: int = 1) -> None:
        self.files = files
        self.together = together
        self.asked: list[str] = []
        self.threads: list[str] = []
        self.in_flight = self.most_in_flight = 0
        self.changed = threading.Condition()

    def read(self, location: str) -> bytes:
        with self.changed:
            self.asked.append(location)
            self.threads.append(threading.current_thread().name)
            self.in_flight += 1
            self.most_in_flight = max(self.most_in_flight, self.in_flight)
            self.changed.notify_all()
            assert self.changed.wait_for(lambda: self.most_in_flight >= self.together, PATIENCE_S)
            self.in_flight -= 1
        if location not in self.files:
            raise MissingFile(location)
        return self.files[location]

    def read_range(self, location: str, offset: int, length: int, *, of_size: int | None = None) -> bytes:
        return self.read(location)[offset : offset + length]

    def open_input(self, location: str) -> object:
        return self.read(location)


def files(count: int, size: int = 10, scheme: str = "s3://bucket") -> dict[str, bytes]:
    return {f"{scheme}/{n}": f"{n}".encode().ljust(size) for n in range(count)}


def ahead(store: object, wanted: Iterator[Wanted], latency_s: float) -> ReadAhead:
    return ReadAhead(store, wanted, Clock(latency_s))  # type: ignore[arg-type]


@pytest.mark.parametrize(("latency_s", "expected"), [(0.05, MOST_IN_FLIGHT), (0.01, 40), (0.002, 8), (0.0001, 4)])
def test_how_many_are_in_flight_follows_the_latency(latency_s: float, expected: int) -> None:
    held = files(1000)
    store = CountedStore(held)
    with ahead(store, (Wanted(name, 10) for name in held), latency_s) as near:
        assert near.read("s3://bucket/0")
        store.together = expected  # from here on nobody goes before so many are waiting
        store.most_in_flight = 0
        assert [near.read(name) for name in list(held)[1:]] == list(held.values())[1:]
    assert expected <= store.most_in_flight <= max(expected, read_ahead.FIRST_IN_FLIGHT)
    assert sorted(store.asked) == sorted(held)  # each once


def test_before_the_latency_is_known_32_are_in_flight() -> None:
    held = files(200)
    store = CountedStore(held, together=32)
    with ahead(store, (Wanted(name, 10) for name in held), 0.05) as near:
        assert near.read("s3://bucket/0") == held["s3://bucket/0"]


@pytest.mark.parametrize("scheme", ["file:///lake", "/lake", "memory://lake"])
def test_where_reads_are_quick_nothing_is_read_ahead(scheme: str) -> None:
    held = files(50, scheme=scheme)
    store = CountedStore(held)
    with ahead(store, (Wanted(name, 10) for name in held), 0.00001) as near:
        for number, name in enumerate(held, 1):
            assert near.read(name) == held[name]
            assert len(store.asked) == number


def test_a_mount_that_turns_out_to_be_slow_is_read_ahead() -> None:
    held = files(100, scheme="file:///mnt")
    store = CountedStore(held)
    with ahead(store, (Wanted(name, 10) for name in held), 0.05) as near:
        for name in list(held)[:3]:
            near.read(name)
        store.together, store.most_in_flight = 50, 0
        assert [near.read(name) for name in list(held)[3:]] == list(held.values())[3:]
    assert sorted(store.asked) == sorted(held)


def test_what_waits_to_be_taken_is_bounded_by_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read_ahead, "MOST_BYTES", 1000)
    held = files(100, size=300)
    store, taken = CountedStore(held), 0
    with ahead(store, (Wanted(name, 300) for name in held), 0.05) as near:
        for name in held:
            near.read(name)
            taken += 300
            assert len(store.asked) * 300 <= taken + 1000


def test_what_was_taken_makes_room_for_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read_ahead, "MOST_BYTES", 1000)
    held = files(100, size=300)
    store = CountedStore(held)
    with ahead(store, (Wanted(name, 300) for name in held), 0.05) as near:
        for name in list(held)[:50]:
            near.read(name)
        with store.changed:
            assert store.changed.wait_for(lambda: len(store.asked) == 53, PATIENCE_S)


def test_a_file_larger_than_all_that_may_be_held_is_read_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read_ahead, "MOST_BYTES", 1000)
    held = files(10, size=5000)
    store = CountedStore(held)
    with ahead(store, (Wanted(name, 5000) for name in held), 0.05) as near:
        assert [near.read(name) for name in held] == list(held.values())
    assert store.most_in_flight == 1


def test_a_file_that_is_asked_for_before_its_turn_is_read_once() -> None:
    held = files(1000)
    store = CountedStore(held)
    names = list(held)
    with ahead(store, (Wanted(name, 10) for name in held), 0.05) as near:
        order = [names[999], names[700], *names[:700], *names[701:999]]
        assert [near.read(name) for name in order] == [held[name] for name in order]
    assert sorted(store.asked) == sorted(held)


def test_parts_of_one_file_are_told_apart() -> None:
    store = CountedStore({"s3://bucket/0": b"0123456789"})
    parts = [Wanted("s3://bucket/0", 2, Part.RANGE, offset) for offset in (0, 4, 8)]
    with ahead(store, iter(parts), 0.05) as near:
        assert [near.read_range("s3://bucket/0", offset, 2) for offset in (8, 0, 4)] == [b"89", b"01", b"45"]
    assert len(store.asked) == 3


def test_an_early_end_cancels_what_has_not_begun() -> None:
    held = files(1000)
    store = CountedStore(held)
    before = threading.active_count()
    pulled: list[str] = []

    def wanted() -> Iterator[Wanted]:
        for name in held:
            pulled.append(name)
            yield Wanted(name, 10)

    with ahead(store, wanted(), 0.05) as near:
        near.read("s3://bucket/0")
    asked = len(store.asked)
    assert asked <= 1 + MOST_IN_FLIGHT
    assert len(pulled) <= 2 + MOST_IN_FLIGHT
    assert threading.active_count() == before  # nothing goes on behind the user's back
    assert near.read("s3://bucket/500") == held["s3://bucket/500"]  # what is held can still be used
    assert len(store.asked) == asked + 1


def test_a_read_that_fails_raises_where_its_file_is_asked_for() -> None:
    held = files(20)
    names = [*list(held)[:5], "s3://bucket/missing", *list(held)[5:]]
    with ahead(CountedStore(held), (Wanted(name, 10) for name in names), 0.05) as near:
        for name in names[:5]:
            assert near.read(name) == held[name]
        with pytest.raises(MissingFile, match="missing"):
            near.read("s3://bucket/missing")
        assert near.read("s3://bucket/5") == held["s3://bucket/5"]


def test_files_that_are_asked_for_in_another_order_are_still_found() -> None:
    held = files(300)
    store = CountedStore(held)
    with ahead(store, (Wanted(name, 10) for name in held), 0.05) as near:
        for name in reversed(held):
            assert near.read(name) == held[name]
    assert len(store.asked) <= 2 * len(held)  # what had to make room is read again


def test_files_that_nobody_asks_for_do_not_stop_the_rest() -> None:
    held = files(2000)
    store = CountedStore(held)
    asked = list(held)[1::2]
    with ahead(store, (Wanted(name, 10) for name in held), 0.05) as near:
        assert [near.read(name) for name in asked] == [held[name] for name in asked]
    late = [name for name, thread in zip(store.asked, store.threads, strict=True) if thread != "MainThread"][-1]
    assert int(late.rpartition("/")[2]) > 1500  # to the end some are read ahead


def test_ranges_and_open_files_are_read_ahead_too(tmp_path: Path) -> None:
    paths = [tmp_path / str(n) for n in range(6)]
    for n, path in enumerate(paths):
        path.write_bytes(bytes([n]) * 100)
    names = [location_of_path(str(path)) for path in paths]
    wanted = [
        *(Wanted(name, 10, Part.RANGE, 7) for name in names[:2]),
        *(Wanted(name, 100) for name in names[2:4]),
        *(Wanted(name, 50, Part.OPENED) for name in names[4:]),
    ]
    with ReadAhead(LocalStore(), wanted) as near:
        assert [near.read_range(name, 7, 10) for name in names[:2]] == [b"\0" * 10, b"\1" * 10]
        assert [near.open_input(name).read() for name in names[2:]] == [bytes([n]) * 100 for n in range(2, 6)]
        assert near.read(names[4]) == b"\4" * 100


def test_in_another_process_it_is_the_store_beneath() -> None:
    store = LocalStore()
    with ReadAhead(store, ()) as near, ReadAhead(near, ()) as nearer:
        assert isinstance(pickle.loads(pickle.dumps(nearer)), LocalStore)
