"""Seeds of the simulation hold, a seed is the same history wherever it runs, and planted bugs are found."""

import os
import subprocess
import sys

import pytest
from tests.effort import scaled
from tests.sim.actor import BRANCHES
from tests.sim.planted import PLANTS, PLANTS_OF_BRANCHES, Plant
from tests.sim.run import mood_of, simulate
from tests.sim.simulation import Failure

pytestmark = pytest.mark.every_case

NORMAL_SEEDS = 60
SEEDS_OF_PLANTS = 120  # the first failure ends the search
SEEDS = int(os.environ.get("ICEFIELD_SIM_SEEDS", scaled(NORMAL_SEEDS)))
CHUNK = 20
DIGESTS = "import sys; from tests.sim.run import simulate; print(*(simulate(int(s)).digest for s in sys.argv[1:]))"


@pytest.mark.parametrize("first", range(0, SEEDS, CHUNK))
def test_no_seed_breaks_an_invariant(first: int) -> None:
    swaps = sum(simulate(seed).swaps for seed in range(first, min(first + CHUNK, SEEDS)))
    assert swaps > 0


def test_a_seed_is_one_history_in_every_process() -> None:
    seeds = [2, 3, 5]
    here = [simulate(seed).digest for seed in seeds]
    assert len(set(here)) == len(seeds)
    assert simulate(seeds[0]).digest == here[0]
    output = subprocess.run(
        [sys.executable, "-c", DIGESTS, *map(str, seeds)],
        env=os.environ | {"PYTHONHASHSEED": "4711", "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        capture_output=True,
        text=True,
        check=True,
    )
    assert output.stdout.split() == here


@pytest.mark.parametrize("plant", PLANTS, ids=lambda plant: plant.__name__)
def test_a_planted_bug_is_found(plant: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    failure = next(failure for failure in map(failure_of, range(SEEDS_OF_PLANTS)) if failure)
    assert 'make sim ARGS="--seed ' in failure


@pytest.mark.parametrize("plant", PLANTS_OF_BRANCHES, ids=lambda plant: plant.__name__)
def test_a_bug_planted_in_branches_is_found(plant: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    seeds = (seed for seed in range(8 * SEEDS_OF_PLANTS) if mood_of(seed) == BRANCHES)
    assert any(map(failure_of, seeds))


def failure_of(seed: int) -> str | None:
    try:
        simulate(seed)
    except Failure as failure:
        return str(failure)
    return None
