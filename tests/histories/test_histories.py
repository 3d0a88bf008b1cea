"""After every step of a random history a table holds what its model holds, at every version, through every filter."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.effort import effort, scaled
from tests.histories.checks import Checks
from tests.histories.history import History

import icefield
from icefield.ambient import SeededAmbient

EXAMPLES = 6  # a longer search: ICEFIELD_EFFORT=50 pytest tests/histories


@effort(EXAMPLES)
@given(random=st.randoms(use_true_random=False), steps=st.integers(1, 6))
def test_a_table_holds_what_its_model_holds_after_every_step(random: Random, steps: int) -> None:
    _walk(random, steps)


@pytest.mark.parametrize("seed", range(scaled(4)))
def test_a_long_history_holds_too(seed: int) -> None:
    history = _walk(Random(seed), 14)
    # A table that refuses everything would pass, too.
    assert history.steps.count("refused") < len(history.steps) / 2


def _walk(random: Random, steps: int) -> History:
    with icefield.connect("memory:", ambient=SeededAmbient(7)) as lake:
        history = History(random, lake, "a.t")
        checks = Checks(history)
        checks.check()
        for _ in range(steps):
            history.step()
            checks.check()
        return history
