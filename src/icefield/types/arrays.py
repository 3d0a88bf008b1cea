"""Names for NumPy arrays by the type of their values."""

import numpy as np
import numpy.typing as npt

Mask = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int32]
Longs = npt.NDArray[np.int64]
