"""The Hilbert curve: every cell once, and neighbours on the curve are neighbours in space."""

import numpy as np
import pytest

from icefield.model.hilbert import CURVE_BITS, curve, curve_positions, hilbert


@pytest.mark.parametrize(("columns", "bits"), [(1, 5), (2, 1), (2, 5), (3, 3), (4, 2)])
def test_every_cell_is_visited_once_by_single_steps(columns: int, bits: int) -> None:
    axes = np.meshgrid(*[np.arange(1 << bits)] * columns, indexing="ij")
    points = np.stack([axis.ravel() for axis in axes])
    positions = hilbert(list(points), bits)
    assert sorted(positions) == list(range(1 << (columns * bits)))
    steps = np.abs(np.diff(points[:, np.argsort(positions)]))
    assert (steps.sum(axis=0) == 1).all()


def test_the_picture_in_the_docstring() -> None:
    x, y = np.meshgrid(np.arange(4), np.arange(4))
    found = hilbert([x.ravel(), y.ravel()], 2).reshape(4, 4)[::-1]
    assert found.tolist() == [[5, 6, 9, 10], [4, 7, 8, 11], [3, 2, 13, 12], [0, 1, 14, 15]]


def test_positions_come_from_a_table_and_large_coordinates_are_cut_off() -> None:
    ranks = [np.array([0, 5, 1 << 40]), np.array([0, 7, 1 << 40])]
    most = (1 << (CURVE_BITS // 2)) - 1
    wanted = hilbert([np.array([0, 5, most]), np.array([0, 7, most])], CURVE_BITS // 2)
    assert curve_positions(ranks).tolist() == wanted.tolist()
    assert len(curve(2, CURVE_BITS // 2)) == 1 << CURVE_BITS
