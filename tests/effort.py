"""How far the suite searches: a few cases with `make quick`, a sample with `make test`, all of it with `make deep`.

    ICEFIELD_DEEP=1      every case of the suites that have a sample, and searches that go DEEP_EFFORT times as far
    ICEFIELD_SEEDS=3:9   these seeds of random cases
    ICEFIELD_EFFORT=50   searches go so many times as far, and below 1 samples are smaller too: `make quick` sets 0.1

A sample is drawn by a fixed seed, so that every run and every process of a run has the same one, whatever else it runs.
"""

import os
from collections.abc import Hashable, Sequence
from random import Random
from typing import Protocol, TypeVar

import pytest
from hypothesis import HealthCheck, settings

DEEP_EFFORT = 20
DEEP = os.environ.get("ICEFIELD_DEEP", "0") not in ("", "0")
EFFORT = float(os.environ.get("ICEFIELD_EFFORT", DEEP_EFFORT if DEEP else 1))
LEAST_EXAMPLES = 5

Case = TypeVar("Case")


class Group(Protocol[Case]):  # type: ignore[misc]
    """Tell which group a case belongs to."""

    def __call__(self, case: Case, /) -> Hashable: ...


def sample(cases: Sequence[Case], count: int, group: Group[Case] = lambda case: None) -> list[Case]:
    """Return every case of a deep run, else so many of each group, in their order."""
    if DEEP:
        return list(cases)
    places: dict[Hashable, list[int]] = {}
    for place, case in enumerate(cases):
        places.setdefault(group(case), []).append(place)
    most = at_most(count)
    chosen = [place for name, some in places.items() for place in Random(str(name)).sample(some, min(most, len(some)))]
    return [cases[place] for place in sorted(chosen)]


def is_sampled(config: pytest.Config) -> bool:
    """Return whether tests with parameters have a sample of their cases, as all that name no test, case or seed do."""
    named = config.option.keyword or "ICEFIELD_SEEDS" in os.environ or any("::" in path for path in config.args)
    return EFFORT <= 1 and not named


def seeds(count: int, deep: int) -> range:
    """Return the seeds of random cases: so many, or those that ICEFIELD_SEEDS=from:to names."""
    return range(*map(int, os.environ.get("ICEFIELD_SEEDS", f"0:{deep if DEEP else at_most(count)}").split(":")))


def scaled(count: int) -> int:
    """Return how many steps a search takes that has so many in `make test`."""
    return max(1, round(count * EFFORT))


def at_most(count: int) -> int:
    """Return how many cases a sample has that has so many in `make test`: fewer with less effort, never more."""
    return min(count, scaled(count))


def effort(examples: int = 100) -> settings:
    """Return how long hypothesis searches."""
    most = max(LEAST_EXAMPLES, scaled(examples // 2))
    return settings(max_examples=most, suppress_health_check=[HealthCheck.too_slow])
