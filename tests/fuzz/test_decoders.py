"""Damaged input: every decoder decodes it or refuses it with an error of its own; it never crashes, hangs or grows.

Some hundred mutants of each decoder are tried in this process, and a thousand and more in others with a watchdog and a
bound on memory. At least 100,000 of each (of foreign decoders, Arrow and SQLite, fewer):

    ICEFIELD_DEEP=1 python -m pytest tests/fuzz -m slow -n auto
"""

from pathlib import Path

import pytest
from tests.effort import DEEP, scaled
from tests.fuzz.apart import run_apart
from tests.fuzz.harness import Decoder, check_sound, run
from tests.fuzz.registry import DECODERS

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


@pytest.mark.slow
def test_the_compiled_kernel_stays_inside_its_arrays(tmp_path: Path) -> None:
    """Compiled with bounds checks, an index outside is an IndexError; its own cache keeps that code apart."""
    checked = {"NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": str(tmp_path / "numba")}
    outcomes = run_apart(["manifest", "list"], tmp_path, f"--count={scaled(250)}", environment=checked)
    assert all(outcome["decoded"] and outcome["refused"] for outcome in outcomes)
