"""Run the kernels: in plain Python while there is little to do, compiled from then on.

Loading numba takes half a second, and several seconds on the first use on a machine. A command on a table of a dozen
files does not need it: plain Python decodes their manifests in milliseconds. So each process has a small budget of
bytes for plain Python; when it is used up, or a single call exceeds it, the compiled kernels take over. Both run the
same functions (`avro.kernel`); only the speed differs.
"""

from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from icefield.codec.avro import kernel as avro_kernel
from icefield.codec.avro.kernel import MAX_LOOPS, Blocks, Slots, Source
from icefield.types.arrays import Longs

Bytes = npt.NDArray[np.uint8]


class Engine(Protocol):
    """The kernels over numpy arrays, in one of their two forms."""

    def decode(self, source: Source, blocks: Blocks, slots: Slots) -> tuple[int, int]:
        """Decode rows into the slots, and the row counts of framed blocks: (0, rows) or (error code, block index)."""

    def encode(self, source: Source, slots: Slots, capacity: int, rows: int) -> tuple[bytes, Longs]:
        """Encode rows: (bytes, end of each row)."""

    def encode_arrays(self, source: Source, slots: Slots, capacity: int, offsets: Longs) -> tuple[bytes, Longs]:
        """Encode rows as arrays: (bytes, end of each array)."""


class PlainEngine:
    """The kernels in plain Python, on bytes and lists, which it indexes faster than arrays."""

    def decode(self, source: Source, blocks: Blocks, slots: Slots) -> tuple[int, int]:
        lists = Blocks(blocks.begin.tolist(), blocks.end.tolist(), blocks.rows.tolist())
        result = avro_kernel.decode_rows(self._plain(source), lists, slots, [0] * MAX_LOOPS)
        blocks.rows[:] = lists.rows
        return result

    def encode(self, source: Source, slots: Slots, capacity: int, rows: int) -> tuple[bytes, Longs]:
        out, ends = bytearray(capacity), np.zeros(rows, np.int64)
        size = avro_kernel.encode_rows(self._plain(source), slots, out, ends)
        return bytes(out[:size]), ends

    def encode_arrays(self, source: Source, slots: Slots, capacity: int, offsets: Longs) -> tuple[bytes, Longs]:
        out, ends = bytearray(capacity), np.zeros(len(offsets) - 1, np.int64)
        size = avro_kernel.encode_arrays(self._plain(source), slots, offsets.tolist(), out, ends)
        return bytes(out[:size]), ends

    def _plain(self, source: Source) -> Source:
        return Source(source.data, source.program.tolist(), source.keys.tolist())


class CompiledEngine:
    """The kernels as machine code, without the interpreter lock."""

    def __init__(self) -> None:
        self._kernels: Any = import_module("icefield.codec.avro.compiled")

    def decode(self, source: Source, blocks: Blocks, slots: Slots) -> tuple[int, int]:
        status, value = self._kernels.decode_rows(_arrays(source), blocks, slots, np.zeros(MAX_LOOPS, np.int64))
        return int(status), int(value)

    def encode(self, source: Source, slots: Slots, capacity: int, rows: int) -> tuple[bytes, Longs]:
        out, ends = np.empty(capacity, np.uint8), np.zeros(rows, np.int64)
        size = self._kernels.encode_rows(_arrays(source), slots, out, ends)
        return out[:size].tobytes(), ends

    def encode_arrays(self, source: Source, slots: Slots, capacity: int, offsets: Longs) -> tuple[bytes, Longs]:
        out, ends = np.empty(capacity, np.uint8), np.zeros(len(offsets) - 1, np.int64)
        size = self._kernels.encode_arrays(_arrays(source), slots, offsets, out, ends)
        return out[:size].tobytes(), ends


@dataclass
class Budget:
    """The bytes that this process may still process in plain Python. It affects speed only, never a result."""

    left_bytes: int

    def spend(self, size: int) -> bool:
        """Take a piece of work from the budget; return whether the budget covered it."""
        self.left_bytes -= size
        return self.left_bytes >= 0


# Half a second of plain Python, which is what it takes to load numba and the compiled code.
BUDGET = Budget(left_bytes=2 * 1024 * 1024)


def engine_for(size: int) -> Engine:
    """Choose the engine for the given number of bytes."""
    is_loaded = compiled_engine.cache_info().currsize > 0
    return compiled_engine() if is_loaded or not BUDGET.spend(size) else PlainEngine()


@cache
def compiled_engine() -> CompiledEngine:
    """Import numba and wrap the kernels, once."""
    return CompiledEngine()


def new_slots(longs: int, spans: int, rows: int) -> Slots:
    """Allocate empty slots. Zeroed pages take memory only when written, so a false row count costs none."""
    return Slots(
        np.zeros((longs, rows), np.int64),
        np.zeros((longs, rows), np.uint8),
        np.zeros((spans, rows), np.int32),
        np.zeros((spans, rows), np.int32),
    )


def _arrays(source: Source) -> Source:
    return Source(np.frombuffer(source.data, np.uint8), source.program, source.keys)
