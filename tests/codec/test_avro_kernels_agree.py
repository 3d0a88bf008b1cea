"""The kernels in C and in plain Python do the same: values, errors and their places, also for damaged input."""

from collections.abc import Sequence
from random import Random
from typing import Any

import numpy as np
import pytest
from tests.codec.random_rows import Schemas, all_programs, random_bytes, random_program
from tests.effort import seeds
from tests.fuzz.corpus import File, manifest_files, manifest_list_files
from tests.fuzz.mutate import mutate_bytes
from tests.fuzz.mutate_avro import any_avro
from tests.kernels import ENGINES, use_engine

from icefield.codec.avro import kernel as avro_kernel
from icefield.codec.avro.engine import Engine, new_slots
from icefield.codec.avro.kernel import Blocks, Slots, Source
from icefield.codec.avro.program import Program
from icefield.codec.manifest.columns import ALL, PLAN
from icefield.codec.manifest.decode import decode_manifest, decode_manifests
from icefield.codec.manifest.list import decode_manifest_list
from icefield.errors import IcefieldError
from icefield.types.arrays import Longs

pytestmark = pytest.mark.every_case

BATCH = 1000


def both(run: Any) -> tuple[Any, Any]:
    """Return what both engines make of the same."""
    return run(ENGINES["plain"]()), run(ENGINES["compiled"]())


def decoded(engine: Engine, program: Program, data: bytes, blocks: Sequence[Longs], rows: int) -> Any:
    """Return everything that a decode leaves behind, also where it fails."""
    copies, slots = Blocks(*(array.copy() for array in blocks)), new_slots(program.longs, program.spans, rows)
    status, value = engine.decode(Source(data, program.code, program.keys), copies, slots)
    return status, value, copies.rows.tolist(), *(array.tolist() for array in slots)


def random_blocks(rows: list[bytes], rng: Random) -> tuple[bytes, list[Longs]]:
    """Put rows into blocks, the first one byte from the start, and damage every second case."""
    data, at = b"\0", 0
    begin, end, counts = list[int](), list[int](), list[int]()
    while at < len(rows) or not begin:
        count = rng.randint(0 if rng.random() < 0.1 else min(1, len(rows) - at), len(rows) - at)
        begin.append(len(data))
        data += b"".join(rows[at : at + count])
        end.append(len(data))
        counts.append(count)
        at += count
    if rng.random() < 0.5:
        data, _ = mutate_bytes(data, rng, data)
        end = [min(each, len(data)) for each in end]
        counts = [max(0, count + rng.choice((0, 0, 0, 1, -1))) for count in counts]
    return data or b"\0", [np.array(each, np.int64) for each in (begin, end, counts)]


@pytest.mark.parametrize("batch", seeds(2, deep=100))
def test_random_programs_read_the_same(batch: int) -> None:
    outcomes = set()
    for seed in range(batch * BATCH, (batch + 1) * BATCH):
        rng = Random(seed)
        schema = Schemas(rng).record()
        program = random_program(schema, rng)
        data, blocks = random_blocks([random_bytes(schema, rng) for _ in range(rng.randint(0, 8))], rng)
        rows = max(0, int(blocks[2].sum()) - (rng.random() < 0.1))
        plain, compiled = both(lambda engine: decoded(engine, program, data, blocks, rows))  # noqa: B023
        assert plain == compiled, f"seed {seed}"
        outcomes.add(plain[0])
    assert outcomes >= {0, *avro_kernel.REASONS}, "not every error was seen"


@pytest.mark.parametrize("batch", seeds(1, deep=50))
def test_random_programs_read_the_elements_of_arrays_the_same(batch: int) -> None:
    elements = 0
    for seed in range(batch * BATCH, (batch + 1) * BATCH):
        rng = Random(seed)
        schema = Schemas(rng).record()
        for program in all_programs(random_program(schema, rng)):
            data, blocks = random_blocks([random_bytes(schema, rng) for _ in range(3)], rng)
            # As an array says it: the count is in the data. That the bytes are of another type is the point.
            framed = [blocks[0], blocks[1], np.full(len(blocks[0]), -1, np.int64)]
            plain, compiled = both(lambda engine: decoded(engine, program, data, framed, 20))  # noqa: B023
            assert plain == compiled, f"seed {seed}"
            elements += 1
    assert elements > BATCH


def random_slots(program: Longs, rows: int, size: int, rng: Random) -> Slots:
    """Fill the slots that a program of an encoder reads, some of them null."""
    slots = new_slots(len(program), len(program), rows)
    for slot in range(len(program)):
        for row in range(rows):
            if rng.random() < 0.7:
                slots.valid[slot, row] = 1
                slots.longs[slot, row] = rng.choice((0, 1, -1, 2**63 - 1, -(2**63), rng.getrandbits(40)))
                begin = rng.randint(1, size - 1)
                slots.begins[slot, row], slots.ends[slot, row] = begin, rng.randint(begin, size)
    return slots


@pytest.mark.parametrize("batch", seeds(1, deep=50))
def test_random_programs_write_the_same(batch: int) -> None:
    for seed in range(batch * BATCH, (batch + 1) * BATCH):
        rng = Random(seed)
        ops = rng.choices((avro_kernel.VARINT, avro_kernel.BOOL, avro_kernel.BYTES, avro_kernel.FIXED), k=5)
        program = np.array([(op, rng.choice((-1, 0, 1)), slot, *(0,) * 5) for slot, op in enumerate(ops)], np.int64)
        rows, data = rng.randint(0, 6), rng.randbytes(50)
        slots = random_slots(program, rows, len(data), rng)
        for slot, op in enumerate(ops):
            if op == avro_kernel.BOOL:
                slots.longs[slot] &= 1
        source = Source(data, program.ravel(), np.zeros(0, np.int64))
        offsets = np.sort(np.array([0, *rng.choices(range(rows + 1), k=3), rows], np.int64))
        capacity = 100 + rows * len(ops) * (11 + len(data))
        plain, compiled = both(lambda engine: engine.encode(source, slots, capacity, rows))  # noqa: B023
        assert (plain[0], plain[1].tolist()) == (compiled[0], compiled[1].tolist()), f"seed {seed}"
        plain, compiled = both(lambda engine: engine.encode_arrays(source, slots, capacity, offsets))  # noqa: B023
        assert (plain[0], plain[1].tolist()) == (compiled[0], compiled[1].tolist()), f"seed {seed}"


def read_by(name: str, read: Any) -> Any:
    """Return what is read with an engine, or the error."""
    with use_engine(name):
        try:
            return read()
        except IcefieldError as error:
            return type(error), str(error)


@pytest.mark.parametrize("file", manifest_files(), ids=lambda file: str(file.name))
def test_manifests_of_all_writers_codecs_and_versions_are_read_the_same(file: File) -> None:
    for want in (PLAN, PLAN.with_statistics([1, 3]), ALL):
        plain, compiled = (read_by(name, lambda: decode_manifest(file.data, "m", want).table) for name in ENGINES)  # noqa: B023
        assert plain.equals(compiled)


def test_many_manifests_are_read_together_the_same() -> None:
    ours = [file for file in manifest_files() if "of ours" in file.name]
    for file in ours:
        many = [(str(number), file.data) for number in range(50)]
        plain, compiled = (read_by(name, lambda: decode_manifests(many, PLAN).table) for name in ENGINES)  # noqa: B023
        assert plain.equals(compiled)


@pytest.mark.parametrize("batch", seeds(1, deep=50))
def test_damaged_manifests_are_read_or_refused_the_same(batch: int) -> None:
    refused = 0
    for seed in range(batch * BATCH, (batch + 1) * BATCH):
        rng = Random(seed)
        file, other = rng.choice(manifest_files()), rng.choice(manifest_files())
        data, _ = any_avro(file.data, rng, other.data)
        plain, compiled = (read_by(name, lambda: decode_manifest(data, "m", ALL).table) for name in ENGINES)  # noqa: B023
        assert plain == compiled, f"seed {seed}"
        refused += isinstance(plain, tuple)
    assert 0 < refused < BATCH


@pytest.mark.parametrize("file", manifest_list_files()[::3], ids=lambda file: str(file.name))
def test_manifest_lists_are_read_the_same(file: File) -> None:
    plain, compiled = (read_by(name, lambda: decode_manifest_list(file.data, "l").table) for name in ENGINES)
    assert plain.equals(compiled)
