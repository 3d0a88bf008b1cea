"""The three ways in which Spark runs a MERGE, chosen by a test instead of by sizes."""

from enum import Enum

import pytest

from icefield.spark.change import range_merge, small_merge
from icefield.spark.change.range_merge import RangeMerge


class MergePath(Enum):
    """SMALL: whatever the sizes say. RANGES: by ranges of keys, as many as possible. SHUFFLE: by a join."""

    SMALL = "small"
    RANGES = "ranges"
    SHUFFLE = "shuffle"


def take_path(patch: pytest.MonkeyPatch, path: MergePath) -> None:
    """Run merges in one way, as far as they allow it."""
    if path is MergePath.SMALL:
        return
    patch.setattr(small_merge, "MOST_FILES", -1)
    if path is MergePath.SHUFFLE:
        patch.setattr(range_merge, "MOST_RANGED_FILES", 0)
        return
    patch.setattr(range_merge, "GROUP_BYTES", 1)
    patch.setattr(range_merge, "MORE_PARTITIONS", 1_000)
    patch.setattr(RangeMerge, "_keeps_files_together", lambda merge, ranges: True)
