"""Run the kernels: in C if the library loads, else in plain Python.

Both do the same (`avro.kernel` is the specification); only the speed differs, by a factor of 70 to 100. There is no
library in a package that was built without a compiler, and ICEFIELD_KERNEL=plain leaves it unused.
"""

from dataclasses import dataclass
from functools import cache
from typing import Protocol

import numpy as np

from icefield.codec.avro import kernel as avro_kernel
from icefield.codec.avro import library
from icefield.codec.avro.compiled import CompiledEngine
from icefield.codec.avro.kernel import MAX_LOOPS, Blocks, Slots, Source
from icefield.errors import InvalidInput
from icefield.types.arrays import Longs

PLAIN = "plain"


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
        out, ends = self._room(capacity), np.zeros(rows, np.int64)
        size = avro_kernel.encode_rows(self._plain(source), slots, out, ends)
        return bytes(out[:size]), ends

    def encode_arrays(self, source: Source, slots: Slots, capacity: int, offsets: Longs) -> tuple[bytes, Longs]:
        out, ends = self._room(capacity), np.zeros(len(offsets) - 1, np.int64)
        size = avro_kernel.encode_arrays(self._plain(source), slots, offsets.tolist(), out, ends)
        return bytes(out[:size]), ends

    def _plain(self, source: Source) -> Source:
        return Source(source.data, source.program.tolist(), source.keys.tolist())

    def _room(self, capacity: int) -> memoryview:
        """Return bytes that cannot grow, as those of an array."""
        return memoryview(bytearray(capacity))


@dataclass(frozen=True)
class Choice:
    """An engine, and what a user reads about it."""

    engine: Engine
    description: str

    @property
    def is_compiled(self) -> bool:
        """Return whether the kernels run in C."""
        return isinstance(self.engine, CompiledEngine)


def current_engine() -> Engine:
    """Return the engine of this process."""
    return chosen().engine


@cache
def chosen() -> Choice:
    """Choose the engine, once. Raises InvalidInput if ICEFIELD_KERNEL asks for something else than plain Python."""
    requested = library.requested_kernel()
    if requested == PLAIN:
        return Choice(PlainEngine(), f"plain Python ({library.VARIABLE}={PLAIN})")
    if requested:
        raise InvalidInput(f"{library.VARIABLE} is {requested!r}", hint=f"It can be {PLAIN!r} or not set.")
    try:
        return Choice(CompiledEngine(library.load_library()), "C")
    except OSError as error:
        return Choice(PlainEngine(), f"plain Python ({error})")


def new_slots(longs: int, spans: int, rows: int) -> Slots:
    """Allocate empty slots. Zeroed pages take memory only when written, so a false row count costs none."""
    return Slots(
        np.zeros((longs, rows), np.int64),
        np.zeros((longs, rows), np.uint8),
        np.zeros((spans, rows), np.int32),
        np.zeros((spans, rows), np.int32),
    )
