"""A run has the cases that tests/README.md says, and the same ones every time."""

import os

import pytest

from tests.effort import DEEP, EFFORT, at_most, sample

MANY = 100


def cases_of(request: pytest.FixtureRequest) -> int:
    """Return how many cases the running test has in this run."""
    name = request.node.nodeid.partition("[")[0]
    return sum(item.nodeid.partition("[")[0] == name for item in request.session.items)


def expected(config: pytest.Config, usual: int) -> int:
    """Return how many cases a test with MANY has, if it usually has so many."""
    named = config.option.keyword or "ICEFIELD_SEEDS" in os.environ or any("::" in path for path in config.args)
    return MANY if named or EFFORT > 1 else 1 if EFFORT < 1 else usual


@pytest.mark.parametrize("case", range(MANY))
def test_a_test_has_some_of_its_cases(case: int, request: pytest.FixtureRequest) -> None:
    assert cases_of(request) == expected(request.config, 6)


@pytest.mark.every_case
@pytest.mark.parametrize("case", range(MANY))
def test_a_list_that_is_marked_is_whole(case: int, request: pytest.FixtureRequest) -> None:
    assert cases_of(request) == expected(request.config, MANY)


def test_a_sample_has_some_of_each_group_whatever_other_groups_there_are() -> None:
    cases = [(group, number) for number in range(50) for group in "abc"]
    chosen = sample(cases, 10, lambda case: case[0])
    assert chosen == sample(cases, 10, lambda case: case[0])
    assert chosen == sorted(chosen, key=cases.index)
    for group in "abc":
        alone = [case for case in cases if case[0] == group]
        own = sample(alone, 10, lambda case: case[0])
        assert len(own) == (50 if DEEP else at_most(10))
        assert own == [case for case in chosen if case[0] == group]
