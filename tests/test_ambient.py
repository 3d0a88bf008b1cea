"""The injected clock and rng: the real ones, and the ones that can be replayed."""

import pytest

from icefield.ambient import Ambient, SeededAmbient, SystemAmbient

AMBIENTS = [SystemAmbient(), SeededAmbient(3)]


def readings(ambient: Ambient, count: int = 50) -> list[object]:
    return [
        value
        for _ in range(count)
        for value in (ambient.now_ms(), ambient.random_id(), ambient.random_uuid(), ambient.uniform(0, 1))
    ]


def test_the_same_seed_tells_the_same_story() -> None:
    assert readings(SeededAmbient(7)) == readings(SeededAmbient(7))
    assert readings(SeededAmbient(7)) != readings(SeededAmbient(8))


def test_the_seeded_clock_moves_by_its_tick_and_by_sleeping_alone() -> None:
    ambient = SeededAmbient(0, start_ms=1000, tick_ms=5)
    assert (ambient.now_ms(), ambient.now_ms()) == (1005, 1010)
    before = ambient.monotonic()
    assert ambient.monotonic() == before
    ambient.sleep(2.5)
    assert ambient.monotonic() - before == 2.5
    assert ambient.now_ms() == 3515


def test_a_clock_that_never_ticks_gives_equal_milliseconds() -> None:
    ambient = SeededAmbient(0, tick_ms=0)
    assert ambient.now_ms() == ambient.now_ms()


def test_what_is_called_in_the_background_is_called_again_after_an_error(caplog: pytest.LogCaptureFixture) -> None:
    ambient, calls = SystemAmbient(), list[int]()

    def call() -> None:
        calls.append(1)
        raise KeyError("lost")

    stop = ambient.every(0.001, call)
    while len(calls) < 3:
        ambient.sleep(0.001)
    stop()
    # Not their text: a session of Spark in this process writes its log as JSON.
    assert {each.getMessage() for each in caplog.records} == {"a background call failed"}
    assert all(each.exc_info is not None and each.exc_info[0] is KeyError for each in caplog.records)


@pytest.mark.parametrize("ambient", AMBIENTS)
def test_no_clock_can_be_slept_backwards(ambient: Ambient) -> None:
    before = ambient.monotonic()
    with pytest.raises(ValueError, match="negative"):
        ambient.sleep(-1)
    assert ambient.monotonic() >= before


@pytest.mark.parametrize("ambient", AMBIENTS)
def test_ids_are_positive_and_fit_a_signed_long(ambient: Ambient) -> None:
    ids = [ambient.random_id() for _ in range(2000)]
    assert all(0 < i < 1 << 63 for i in ids)
    assert len(set(ids)) == len(ids)
    assert max(ids) > 1 << 61


@pytest.mark.parametrize("ambient", AMBIENTS)
def test_uuids_are_of_version_4_and_differ(ambient: Ambient) -> None:
    drawn = [ambient.random_uuid() for _ in range(100)]
    assert {u.version for u in drawn} == {4}
    assert len(set(drawn)) == len(drawn)


@pytest.mark.parametrize("ambient", AMBIENTS)
def test_uniform_stays_between_its_ends(ambient: Ambient) -> None:
    drawn = [ambient.uniform(2, 3) for _ in range(200)]
    assert all(2 <= d <= 3 for d in drawn)
    assert len(set(drawn)) > 100


@pytest.mark.parametrize("ambient", AMBIENTS)
def test_neither_clock_runs_backwards(ambient: Ambient) -> None:
    moments = [ambient.monotonic() for _ in range(100)]
    assert moments == sorted(moments)


def test_the_system_clock_counts_milliseconds_since_the_epoch() -> None:
    assert SystemAmbient().now_ms() > 1_600_000_000_000
