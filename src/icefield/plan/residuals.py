"""Group planned files by residual, for engines that filter many files by one expression.

    >>> import pyarrow as pa
    >>> columns = pa.table({"residual_code": [5, 1, 1, 0], "file_size_in_bytes": [9_000, 800, 700, 50]})
    >>> files = PlannedFiles.trusted(columns)
    >>> [(code, group.num_rows) for code, group in group_by_residual(files, least_bytes=1_000)]
    [(5, 1), (1, 2), (0, 1)]
    >>> [(code, group.num_rows) for code, group in group_by_residual(files, least_bytes=2_000)]
    [(5, 1), (0, 3)]

The codes are those of `expr.prune.residual`. In the second call the files with code 1 are too small for a group of
their own, so they are filtered together with the last file, which needs the whole filter.
"""

import numpy as np
import pyarrow.compute as pc

from icefield.expr.prune.residual import common_code
from icefield.plan.planned_files import PlannedFiles

MOST_GROUPS = 4


def group_by_residual(files: PlannedFiles, least_bytes: int) -> list[tuple[int, PlannedFiles]]:
    """Group planned files, each group with a residual code that holds for all of its files.

    Each group costs the engine a scan, so a code gets its own group only if its files have enough bytes. The other
    files form one group, which is filtered by every condition that is not satisfied for each of them.
    """
    codes = files.residual_code.to_numpy()
    sizes = files.file_size_in_bytes.to_numpy()
    distinct, indices = np.unique(codes, return_inverse=True)
    totals = np.bincount(indices, sizes)
    largest = np.argsort(-totals, kind="stable")[:MOST_GROUPS]
    apart = [index for index in largest if totals[index] >= least_bytes]
    groups = [(int(distinct[index]), files.choose(indices == index)) for index in apart]
    together = ~np.isin(indices, apart)
    if together.any():
        groups.append((common_code(codes[together]), files.choose(together)))
    return [group for group in groups if group[1].num_rows] or [(0, files)]


def residual_counts(files: PlannedFiles) -> list[tuple[int, int]]:
    """Return each residual code among planned files with its number of files."""
    counted = pc.value_counts(files.residual_code.combine_chunks()).to_pylist()
    return [(row["values"], row["counts"]) for row in counted]
