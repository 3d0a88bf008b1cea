"""A table that is kept up while it is changed holds what its model holds, and nothing is left of what it needs no more.

Each step of upkeep also meets changes that were planned before it, and comes before those that were planned after it.
"""

from random import Random

import pytest
from tests.effort import seeds
from tests.histories.checks import Checks
from tests.histories.features import Features
from tests.histories.kept_up import KeptUpHistory

import icefield
from icefield.ambient import SeededAmbient
from icefield.types.datatypes import TimestampNsType, TimestamptzNsType

STEPS = 25
# A struct of nothing but columns of unknown type is null in files, whatever was written.
FEATURES = Features(newer_kinds=(TimestampNsType(), TimestamptzNsType()))


@pytest.mark.every_case
@pytest.mark.parametrize("seed", seeds(5, 300))
def test_a_table_that_is_kept_up_holds_what_its_model_holds(seed: int) -> None:
    with icefield.connect("memory:", ambient=SeededAmbient(7)) as lake:
        history = KeptUpHistory(Random(seed), lake, "a.t", FEATURES)
        checks = Checks(history)
        for _ in range(STEPS):
            history.step()
            checks.check()
            history.check_health()
        assert history.steps.count("refused") < STEPS / 2
