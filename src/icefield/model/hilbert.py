"""Positions on a Hilbert curve: an order of points in which neighbours are near to each other in every dimension.

    two columns, 2 bits each      values -> ranks -> position on the curve

      y 3 |  5  6  9 10           (x=0, y=0) -> 0     (x=3, y=0) -> 15
        2 |  4  7  8 11           neighbours on the curve are neighbours in the plane
        1 |  3  2 13 12
        0 |  0  1 14 15
            0  1  2  3  x

The curve has as many cells as a table of it may have, so that a position costs one look into the table.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise

from icefield.deferred import deferred_imports

with deferred_imports(__name__):
    import numpy as np

    from icefield.types.arrays import Longs

CURVE_BITS = 20  # of all dimensions together


def curve_positions(ranks: Sequence[Longs]) -> Longs:
    """Return the position of points, whose coordinates are small numbers from 0 on; larger ones are cut off."""
    bits = CURVE_BITS // len(ranks)
    most = (1 << bits) - 1
    cells = np.minimum(ranks[0], most)
    for rank in ranks[1:]:
        cells = (cells << bits) | np.minimum(rank, most)
    return curve(len(ranks), bits)[cells]


@lru_cache(maxsize=4)
def curve(columns: int, bits: int) -> Longs:
    """Return the position of every cell on the Hilbert curve; a cell is the ranks of its columns, as one number."""
    cells = np.arange(1 << (columns * bits), dtype=np.int64)
    mask = (1 << bits) - 1
    return hilbert([(cells >> (bits * (columns - 1 - at))) & mask for at in range(columns)], bits)


def hilbert(axes: Sequence[Longs], bits: int) -> Longs:
    """Return the position on the Hilbert curve of points. (J. Skilling: Programming the Hilbert curve, 2004)"""
    x = [axis.copy() for axis in axes]
    step = 1 << (bits - 1)
    while step > 1:  # undo the rotations
        low = step - 1
        for axis in x:
            is_set = (axis & step) != 0
            swapped = (x[0] ^ axis) & low
            x[0] ^= np.where(is_set, low, swapped)
            if axis is not x[0]:
                axis ^= np.where(is_set, 0, swapped)
        step >>= 1
    for before, axis in pairwise(x):  # Gray code
        axis ^= before
    flip = np.zeros_like(x[0])
    step = 1 << (bits - 1)
    while step > 1:
        flip ^= np.where((x[-1] & step) != 0, step - 1, 0)
        step >>= 1
    position = np.zeros_like(x[0])
    for bit in range(bits - 1, -1, -1):
        for axis in x:
            position = (position << 1) | (((axis ^ flip) >> bit) & 1)
    return position
