"""Collectors with no grace at all hurt nobody, whatever the order; planted bugs of collectors are found."""

from contextlib import nullcontext

import pytest
from tests.effort import scaled
from tests.sim.collecting import simulate_collectors
from tests.sim.model import Violation
from tests.sim.planted_collectors import PLANTS, Plant, commits_that_do_not_ask_leases
from tests.sim.simulation import Failure, Simulation
from tests.sim.watch import Watch

pytestmark = [pytest.mark.every_case, pytest.mark.slow]

SEEDS = 40
MOST_SEEDS = 1_000  # a planted bug stops the search
CHUNK = 10


@pytest.mark.parametrize("first", range(0, scaled(SEEDS), CHUNK))
def test_no_seed_breaks_an_invariant(first: int) -> None:
    assert sum(simulate_collectors(seed).swaps for seed in range(first, first + CHUNK)) > 0


def test_a_seed_is_one_history() -> None:
    alone = simulate_collectors(3).digest
    simulate_collectors(4)
    assert simulate_collectors(3).digest == alone


@pytest.mark.parametrize("plant", PLANTS, ids=lambda plant: plant.__name__)
def test_a_planted_bug_is_found(plant: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    first, rest = PLANTS[plant], range(MOST_SEEDS)
    assert any(fails(seed) for seed in (first, *rest))


def test_a_violation_is_heard_though_the_code_that_is_judged_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """What follows a commit cannot make it fail, and takes a violation for an error of the store."""
    commits_that_do_not_ask_leases(monkeypatch)
    seed = PLANTS[commits_that_do_not_ask_leases]
    with pytest.raises(Failure, match="which the lease .* holds"):
        simulate_collectors(seed)
    monkeypatch.setattr(Simulation, "_heard", lambda _: nullcontext())
    simulate_collectors(seed)


def fails(seed: int) -> bool:
    try:
        simulate_collectors(seed)
    except Failure:
        return True
    return False


@pytest.mark.parametrize(("who", "is_committed"), [("a", False), ("a", True), ("b", False)])
def test_only_who_wrote_a_metadata_file_removes_it_and_only_uncommitted(who: str, is_committed: bool) -> None:
    """As a restore does whose swap is refused; it has no lease (seed 1000240)."""
    watch, location = Watch(), "memory://lake/t/metadata/00007-x.metadata.json"
    watch.stored(location, b"", "a", 0.0)
    if is_committed:
        watch.committed(location)
    if who == "a" and not is_committed:
        watch.removing(location, who, lambda _: True)
        return
    with pytest.raises(Violation, match="which no audit lists"):
        watch.removing(location, who, lambda _: True)
