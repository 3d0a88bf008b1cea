"""The kernels, compiled to machine code on first use and kept in numba's cache on disk.

Importing this module loads numba, and the first use on a machine compiles for several seconds, so only `avro.engine`
imports it, and only when there is enough work. The cache is keyed by the modification time of `avro.kernel`, not of
this file: after a change of the options here, remove the cached code.
"""

from collections.abc import Callable
from typing import Any

import numba
from numba.extending import register_jitable

from icefield.codec.avro import kernel as avro_kernel

_PARTS: tuple[Callable[..., Any], ...] = (
    avro_kernel.decode_row,
    avro_kernel.read_leaf,
    avro_kernel.read_map,
    avro_kernel.find_key,
    avro_kernel.next_run,
    avro_kernel.open_run,
    avro_kernel.read_branch,
    avro_kernel.read_varint,
    avro_kernel.put_long,
    avro_kernel.put_span,
    avro_kernel.mark_span,
    avro_kernel.encode_row,
    avro_kernel.write_long,
    avro_kernel.write_varint,
    avro_kernel.copy_bytes,
)


# The kernels do not allocate, so they need no reference counts. Reference counts and calls that are not inlined would
# make them four times slower.
_OPTIONS: dict[str, Any] = {"_nrt": False}
for _part in _PARTS:
    register_jitable(forceinline=True, **_OPTIONS)(_part)


def _compile(function: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a kernel for compilation; without a writable directory for the cache, each process compiles again."""
    try:
        compiled: Callable[..., Any] = numba.njit(function, nogil=True, cache=True, **_OPTIONS)
    except RuntimeError:
        compiled = numba.njit(function, nogil=True, **_OPTIONS)
    return compiled


decode_rows = _compile(avro_kernel.decode_rows)
encode_rows = _compile(avro_kernel.encode_rows)
encode_arrays = _compile(avro_kernel.encode_arrays)
