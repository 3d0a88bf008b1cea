"""Damaged input: every decoder decodes it or refuses it with an error of its own; it never crashes, hangs or grows.

Some hundred mutants of each decoder are tried in this process, and a thousand and more in others with a watchdog and a
bound on memory. At least 100,000 of each (of foreign decoders, Arrow and SQLite, fewer):

    ICEFIELD_DEEP=1 python -m pytest tests/fuzz -m slow -n auto
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from scripts.compile_kernel import NotCompiled
from tests.effort import DEEP, scaled
from tests.fuzz.apart import ROOT, run_apart
from tests.fuzz.harness import Decoder, check_sound, run
from tests.fuzz.registry import DECODERS
from tests.kernels import sanitized_kernel

pytestmark = pytest.mark.every_case

OURS = [decoder for decoder in DECODERS if not decoder.child]
FOREIGN = [decoder for decoder in DECODERS if decoder.child]
# A process loads for a second, so that each has several decoders, unless there is time.
PROCESSES = len(DECODERS) if DEEP else 4


@pytest.mark.parametrize("decoder", OURS, ids=lambda decoder: str(decoder.name))
def test_mutants_are_decoded_or_refused(decoder: Decoder) -> None:
    check_sound(decoder)
    outcome = run(decoder, range(decoder.normal))
    assert outcome.decoded, "damage that nothing survives tests only the first check"
    assert outcome.refused


def test_damaged_rows_do_not_crash_the_reader(tmp_path: Path) -> None:
    outcomes = run_apart([decoder.name for decoder in FOREIGN], tmp_path)
    assert all(outcome["decoded"] and outcome["refused"] for outcome in outcomes)


@pytest.mark.slow
@pytest.mark.parametrize("number", range(PROCESSES))
def test_many_mutants_are_decoded_or_refused_in_bounded_time_and_memory(number: int, tmp_path: Path) -> None:
    some = DECODERS[number::PROCESSES]
    outcomes = run_apart([decoder.name for decoder in some], tmp_path, "--many")
    tried = [outcome["decoded"] + outcome["refused"] for outcome in outcomes]
    assert tried == [decoder.mutants() for decoder in some]


@pytest.fixture(scope="module")
def sanitizers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment of processes whose kernels end at the first read or write outside of their arrays."""
    try:
        return sanitized_kernel(tmp_path_factory.mktemp("sanitized"))
    except NotCompiled as error:
        pytest.skip(f"no compiler with sanitizers: {error}")


@pytest.mark.slow
def test_the_kernels_in_c_stay_inside_their_arrays(tmp_path: Path, sanitizers: dict[str, str]) -> None:
    outcomes = run_apart(["manifest", "list"], tmp_path, f"--count={scaled(250)}", environment=sanitizers)
    assert all(outcome["decoded"] and outcome["refused"] for outcome in outcomes)


# Calls C without the checks of compiled.py, with an array that is too short.
OUTSIDE = """
import numpy as np
from icefield.codec.avro import compiled
from icefield.codec.avro.kernel import Blocks, Slots, Source, WIDTH
from tests.kernels import compiled_engine

compiled._address = lambda array, kind, shape: array.ctypes.data
program = np.array([0, -1, 0, 0, WIDTH, 0, 0, -1])
blocks = Blocks(np.array([1]), np.array([1001]), np.array([1000]))
slots = Slots(np.zeros((1, 1000), np.int64), np.zeros((1, 1000), np.uint8), np.zeros((0, 1000)), np.zeros((0, 1000)))
{damage}
print(compiled_engine().decode(Source(bytes(1001), program, program), blocks, slots))
"""
DAMAGES = {
    "nothing": "",
    "write": "slots = slots._replace(longs=np.zeros((1, 1000), np.int8))",
    "read": "blocks = blocks._replace(end=np.zeros(1, np.int32))",
}


@pytest.mark.slow
@pytest.mark.parametrize("damage", DAMAGES)
def test_the_sanitizers_see_an_access_outside_of_an_array(damage: str, sanitizers: dict[str, str]) -> None:
    command = [sys.executable, "-c", OUTSIDE.format(damage=DAMAGES[damage])]
    ended = subprocess.run(
        command, cwd=ROOT, env={**os.environ, **sanitizers}, capture_output=True, text=True, check=False
    )
    if damage == "nothing":
        assert ended.stdout == "(0, 1000)\n", ended.stderr
    else:
        assert f"{damage.upper()} of size 8" in ended.stderr
