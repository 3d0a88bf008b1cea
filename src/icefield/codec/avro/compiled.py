"""The kernels, compiled to machine code on first use and kept in numba's cache on disk.

Importing this loads numba, and the first use on a machine compiles for several seconds; so only `avro_engine` imports
it, and only when there is enough work. The cache is keyed by the date of `avro_kernel`, not of this file: whoever
changes the options here must remove the cached code.
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


# Nothing in the kernels allocates, so they need no reference counts; with those and with real calls between the parts
# they take four times as long.
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
