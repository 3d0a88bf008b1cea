"""Files in groups whose ranges of keys do not overlap."""

from random import Random

import pytest
from tests.effort import seeds

from icefield.spark.change.key_ranges import Bounds, pack_ranges


@pytest.mark.parametrize("seed", seeds(20, deep=2000))
def test_a_key_of_a_file_belongs_to_the_group_of_the_file(seed: int) -> None:
    random = Random(seed)
    lowers = [random.randrange(60) for _ in range(random.randint(1, 12))]
    files = [Bounds(low, low + random.choice((0, 1, 5, 20)), random.randint(1, 9)) for low in lowers]
    groups = pack_ranges(files, random.choice((1, 5, 10, 100)))
    assert sorted(number for group in groups for number in group.numbers) == list(range(len(files)))
    starts = [group.start for group in groups]
    assert starts == sorted(set(starts))
    for at, group in enumerate(groups):
        for number in group.numbers:
            for key in (files[number].lower, files[number].upper):
                assert sum(start <= key for start in starts[1:]) == at  # type: ignore[operator]


def test_a_group_ends_when_it_is_large_enough_and_the_next_file_overlaps_none_of_it() -> None:
    files = [Bounds(0, 9, 4), Bounds(10, 50, 4), Bounds(20, 30, 4), Bounds(50, 60, 4), Bounds(61, 70, 4)]
    assert [group.numbers for group in pack_ranges(files, 5)] == [(0, 1, 2, 3), (4,)]
    assert [group.numbers for group in pack_ranges(files, 1)] == [(0,), (1, 2, 3), (4,)]
    assert pack_ranges([], 1) == []
