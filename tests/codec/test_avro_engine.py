"""The kernels: integers of every length, and the choice between plain Python and machine code."""

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.codec.avro_writer import long

from icefield.codec.avro import engine as avro_engine
from icefield.codec.avro.engine import Budget, CompiledEngine, PlainEngine, engine_for, new_slots
from icefield.codec.avro.kernel import (
    BAD_VARINT,
    REASONS,
    Blocks,
    Source,
    read_varint,
    write_varint,
)
from icefield.codec.avro.program import Wanted, compile_program
from icefield.codec.avro.schema import ROOT_ID, Field, Record, Value

EDGES = [0, -1, 63, 64, -64, -65, 2**31, 2**62, 2**63 - 1, -(2**63)]


@given(st.integers(-(2**63), 2**63 - 1) | st.sampled_from(EDGES))
def test_integers_are_written_as_avro_has_them_and_read_back(value: int) -> None:
    out = bytearray(10)
    size = write_varint(out, 0, value)
    assert out[:size] == long(value)
    assert read_varint(bytes(out[:size]), 0, size) == (value, size)


@pytest.mark.parametrize("data", [b"", b"\x80", b"\xff" * 9, b"\xff" * 10 + b"\x01", b"\xff" * 9 + b"\x02"])
def test_integers_that_are_cut_off_or_too_long_are_errors(data: bytes) -> None:
    assert read_varint(data, 0, len(data)) == (0, BAD_VARINT)


def test_an_error_is_handed_on() -> None:
    assert read_varint(b"\x02", BAD_VARINT, 1) == (0, BAD_VARINT)
    assert BAD_VARINT in REASONS


@pytest.mark.parametrize("engine", [PlainEngine, CompiledEngine])
@pytest.mark.parametrize("damage", [False, True])
def test_both_engines_read_the_same_integers(engine: type[PlainEngine | CompiledEngine], damage: bool) -> None:
    schema = Record((Field("x", 1, Value("long"), null_branch=1),))
    program = compile_program(schema, Wanted(values=frozenset({(ROOT_ID, 1)})))
    rows = [b"\x00" + long(value) for value in EDGES] + [b"\x02"]
    data = b"\0" + b"".join(rows) + (b"\0" if damage else b"")
    blocks = Blocks(np.array([1]), np.array([len(data)]), np.array([len(rows)]))
    slots = new_slots(program.longs, program.spans, len(rows))
    status, _ = engine().decode(Source(data, program.code, program.keys), blocks, slots)
    assert (status < 0) == damage
    assert slots.longs[0].tolist() == [*EDGES, 0]
    assert slots.valid[0].tolist() == [1] * len(EDGES) + [0]


def test_plain_python_is_used_until_its_budget_is_spent(monkeypatch: pytest.MonkeyPatch) -> None:
    avro_engine.compiled_engine.cache_clear()  # other tests have loaded it
    monkeypatch.setattr(avro_engine, "BUDGET", Budget(100))
    chosen = [type(engine_for(size)) for size in (60, 40, 1, 1)]
    assert chosen == [PlainEngine, PlainEngine, CompiledEngine, CompiledEngine]


def test_the_compiler_is_used_for_everything_once_it_is_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    avro_engine.compiled_engine()
    monkeypatch.setattr(avro_engine, "BUDGET", Budget(100))
    assert type(engine_for(1)) is CompiledEngine


@pytest.mark.slow
def test_a_small_manifest_list_is_read_without_a_compiler() -> None:
    program = """
import sys
from icefield.codec.manifest.list import ManifestListHeader, decode_manifest_list, encode_manifest_list
from icefield.codec.manifest.list_schema import MANIFEST_LIST_ARROW_SCHEMA
from icefield.codec.manifest.rows import Manifests
rows = Manifests.trusted(MANIFEST_LIST_ARROW_SCHEMA.empty_table())
data = encode_manifest_list(rows, ManifestListHeader(1, None, 1), "l")
decode_manifest_list(data, "l")
print("numba" in sys.modules)
"""
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "False"
