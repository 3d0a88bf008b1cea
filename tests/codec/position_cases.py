"""Sorted positions of every shape that a bitmap has a form for: sparse, dense, runs, and their borders."""

import numpy as np

from icefield.codec.puffin.roaring import Positions


def positions_of_all_shapes(below: int) -> list[Positions]:
    """Return sorted positions, each once, smaller than a bound."""
    rng = np.random.default_rng(7)
    shapes = [
        np.array([], np.int64),
        np.array([0]),
        np.array([below - 1]),
        np.array([0, 65535, 65536, 131071, below - 1]),
        np.arange(65536),
        np.arange(65530, 65545),
        np.arange(0, 2 * 4096, 2),  # the largest array
        np.arange(0, 2 * 4097, 2),  # the smallest bitmap
        np.arange(3),  # runs would be as large as the array
        np.arange(4),
        np.setdiff1d(np.arange(200_000), np.arange(0, 200_000, 97)),
        np.unique(rng.integers(0, below, 500)),
        np.unique(rng.integers(0, 1 << 17, 50_000)),
        np.unique(np.concatenate([start + np.arange(start % 50) for start in rng.integers(0, 1 << 20, 300)])),
        np.concatenate([np.arange(4) + (index << 16) for index in range(5)]),  # enough containers for offsets
    ]
    return [shape.astype(np.int64) for shape in shapes]
