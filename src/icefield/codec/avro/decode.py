"""Decode Avro rows: decompressed blocks of one or many files in, values in slots out.

`avro.arrow` converts them to columns. Raises CorruptFile with the location of the file that contains the bad rows.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from icefield.codec.avro import engine as avro_engine
from icefield.codec.avro.container import DEFAULT_LIMITS, Block, Limits
from icefield.codec.avro.engine import new_slots
from icefield.codec.avro.kernel import REASONS, Blocks, Slots, Source
from icefield.codec.avro.program import Column, Program
from icefield.errors import CorruptFile
from icefield.types.arrays import Ints, Longs, Mask

# Position 0 means "null" in the slots, so data starts after it; unaligned reads may reach past the last value.
_FRONT, _BACK = b"\0", b"\0" * 16


@dataclass(frozen=True)
class RawRows:
    """Concatenated decompressed blocks: the position, row count and file of each."""

    data: bytes | bytearray
    begin: Longs
    end: Longs
    rows: Longs
    owner: Longs
    locations: tuple[str, ...]


@dataclass(frozen=True)
class Decoded:
    """Decoded rows in slots: all rows, or those whose numbers are in `chosen`."""

    raw: RawRows
    slots: Slots
    chosen: Longs | None = None

    @property
    def count(self) -> int:
        return int(self.slots.longs.shape[1]) if self.chosen is None else len(self.chosen)

    @cached_property
    def owner(self) -> Longs:
        """The file that each row comes from."""
        return self._of_rows(np.repeat(self.raw.owner, self.raw.rows))  # type: ignore[no-any-return]

    def choose(self, rows: Longs) -> "Decoded":
        """Return the rows with the given numbers, counted among all rows."""
        return replace(self, chosen=rows)

    def counts(self, column: Column) -> Longs:
        """Return how many elements each value of an array column has."""
        return self._of_rows(self.slots.longs[column.count_slot])  # type: ignore[no-any-return]

    def longs(self, column: Column) -> tuple[Longs, Mask]:
        """Return a column's integers, and a mask of those that are not null."""
        return self._of_rows(self.slots.longs[column.slot]), self._of_rows(self.slots.valid[column.slot]) != 0

    def spans(self, column: Column) -> tuple[Ints, Ints, Mask]:
        """Return where a column's bytes begin and end, and a mask of those that are not null."""
        begins, ends = self._of_rows(self.slots.begins[column.slot]), self._of_rows(self.slots.ends[column.slot])
        return begins, ends, ends != 0

    def _of_rows(self, values: Any) -> Any:
        return values if self.chosen is None else values[self.chosen]


def pack_rows(files: Iterable[tuple[str, Iterable[Block]]], limits: Limits = DEFAULT_LIMITS) -> RawRows:
    """Concatenate the decompressed blocks of one or many files."""
    # One growing buffer: each block is released once it is copied, so that the blocks are not all in memory as well.
    data = bytearray(_FRONT)
    locations: list[str] = []
    rows, owner, ends = [], [], []
    left = limits.total_bytes
    for location, blocks in files:
        for block in blocks:
            left -= len(block.data)
            if left < 0:
                raise CorruptFile(location, f"its rows grow beyond the limit of {limits.total_bytes} bytes")
            data += block.data
            ends.append(len(data))
            # A row takes at least a byte; `decode`, which has the schema, refuses a count beyond the limit.
            rows.append(min(block.rows, limits.total_bytes))
            owner.append(len(locations))
        locations.append(location)
    data += _BACK
    end = np.array(ends, np.int64)
    begin = np.array([len(_FRONT), *ends[:-1]] if ends else [], np.int64)
    return RawRows(data, begin, end, np.array(rows, np.int64), np.array(owner, np.int64), tuple(locations))


def decode(raw: RawRows, program: Program, limits: Limits = DEFAULT_LIMITS) -> Decoded:
    """Run a program over all rows."""
    impossible = np.flatnonzero(raw.rows * program.smallest_row > raw.end - raw.begin)
    if len(impossible):
        raise CorruptFile(raw.locations[raw.owner[impossible[0]]], "a block claims more rows than its size allows")
    total = int(raw.rows.sum())
    if total > limits.rows:
        raise CorruptFile(raw.locations[-1], f"{total} rows in total, more than the limit of {limits.rows}")
    return _run(raw, program, total)


def decode_elements(decoded: Decoded, column: Column, limits: Limits = DEFAULT_LIMITS) -> tuple[Decoded, Longs]:
    """Read the elements of an array column as rows: (the elements, how many each row has)."""
    assert column.elements is not None
    begins, ends, present = decoded.spans(column)
    total = int(decoded.counts(column).sum())
    if total > limits.elements:
        raise CorruptFile(decoded.raw.locations[-1], f"{column.name} has {total} elements, more than {limits.elements}")
    raw = RawRows(
        decoded.raw.data,
        begins[present].astype(np.int64),
        ends[present].astype(np.int64),
        np.full(int(present.sum()), -1, np.int64),
        decoded.owner[present],
        decoded.raw.locations,
    )
    elements = _run(raw, column.elements, total)
    lengths = np.zeros(decoded.count, np.int64)
    lengths[present] = raw.rows
    return elements, lengths


def _run(raw: RawRows, program: Program, total: int) -> Decoded:
    slots = new_slots(program.longs, program.spans, total)
    source = Source(raw.data, program.code, program.keys)
    status, value = avro_engine.current_engine().decode(source, Blocks(raw.begin, raw.end, raw.rows), slots)
    if status < 0:
        raise CorruptFile(raw.locations[raw.owner[value]], REASONS[status])
    return Decoded(raw, slots)
