"""Call the kernels in C over numpy arrays.

C trusts the addresses and lengths that it is given, so that types and shapes are checked here. What a position outside
an array would be in plain Python, an IndexError, it is here too.
"""

from ctypes import CDLL, POINTER, Structure, byref, c_int64, c_void_p
from typing import Any

import numpy as np
import numpy.typing as npt

from icefield.codec.avro.kernel import Blocks, Slots, Source
from icefield.types.arrays import Longs

# As in kernel.c.
OUTSIDE = -7


class _Source(Structure):
    _fields_ = (
        ("data", c_void_p),
        ("size", c_int64),
        ("program", c_void_p),
        ("length", c_int64),
        ("keys", c_void_p),
    )


class _Blocks(Structure):
    _fields_ = (("begin", c_void_p), ("end", c_void_p), ("rows", c_void_p), ("count", c_int64))


class _Slots(Structure):
    _fields_ = (
        ("longs", c_void_p),
        ("valid", c_void_p),
        ("begins", c_void_p),
        ("ends", c_void_p),
        ("rows", c_int64),
    )


class CompiledEngine:
    """The kernels in C, which run without the interpreter lock."""

    def __init__(self, library: CDLL) -> None:
        source, blocks, slots = POINTER(_Source), POINTER(_Blocks), POINTER(_Slots)
        self._decode_rows = library.decode_rows
        self._decode_rows.argtypes = [source, blocks, slots, POINTER(c_int64)]
        self._encode_rows = library.encode_rows
        self._encode_rows.argtypes = [source, slots, c_void_p, c_int64, c_void_p, c_int64]
        self._encode_arrays = library.encode_arrays
        self._encode_arrays.argtypes = [source, slots, c_void_p, c_void_p, c_int64, c_void_p, c_int64]
        for function in (self._decode_rows, self._encode_rows, self._encode_arrays):
            function.restype = c_int64

    def decode(self, source: Source, blocks: Blocks, slots: Slots) -> tuple[int, int]:
        count, value, data = len(blocks.begin), c_int64(), np.frombuffer(source.data, np.uint8)
        listed = _Blocks(*(_address(array, np.int64, (count,)) for array in blocks), count)
        status = self._decode_rows(byref(_source(source, data)), byref(listed), byref(_slots(slots)), byref(value))
        return _checked(status), value.value

    def encode(self, source: Source, slots: Slots, capacity: int, rows: int) -> tuple[bytes, Longs]:
        out, ends = np.empty(capacity, np.uint8), np.zeros(rows, np.int64)
        data, filled = np.frombuffer(source.data, np.uint8), _slots(slots)
        if filled.rows < rows:
            raise IndexError(f"{filled.rows} rows in the slots, and {rows} to encode")
        size = self._encode_rows(
            byref(_source(source, data)), byref(filled), out.ctypes.data, capacity, ends.ctypes.data, rows
        )
        return out[: _checked(size)].tobytes(), ends

    def encode_arrays(self, source: Source, slots: Slots, capacity: int, offsets: Longs) -> tuple[bytes, Longs]:
        out, ends = np.empty(capacity, np.uint8), np.zeros(len(offsets) - 1, np.int64)
        data, filled = np.frombuffer(source.data, np.uint8), _slots(slots)
        at, room = _address(offsets, np.int64, (len(ends) + 1,)), out.ctypes.data
        size = self._encode_arrays(
            byref(_source(source, data)), byref(filled), at, room, capacity, ends.ctypes.data, len(ends)
        )
        return out[: _checked(size)].tobytes(), ends


def _source(source: Source, data: npt.NDArray[np.uint8]) -> _Source:
    length = len(source.program)
    return _Source(
        data.ctypes.data,
        len(data),
        _address(source.program, np.int64, (length,)),
        length,
        _address(source.keys, np.int64, source.keys.shape),
    )


def _slots(slots: Slots) -> _Slots:
    longs, spans = slots.longs.shape, slots.begins.shape
    if longs[1] != spans[1]:
        raise TypeError(f"slots of {longs[1]} and of {spans[1]} rows")
    return _Slots(
        _address(slots.longs, np.int64, longs),
        _address(slots.valid, np.uint8, longs),
        _address(slots.begins, np.int32, spans),
        _address(slots.ends, np.int32, spans),
        longs[1],
    )


def _address(array: Any, kind: type[np.generic], shape: tuple[int, ...]) -> int:
    """Return where an array begins, if C can read it as it expects."""
    if array.dtype != kind or array.shape != shape or not array.flags.c_contiguous:
        raise TypeError(f"an array of {array.dtype} {array.shape}, not of {np.dtype(kind)} {shape}")
    return int(array.ctypes.data)


def _checked(status: int) -> int:
    if status == OUTSIDE:
        raise IndexError("a position outside the arrays of the kernel")
    return status
