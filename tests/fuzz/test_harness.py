"""The harness sees what it is there to see: wrong errors, hangs, crashes, hunger for memory; and names the mutant."""

import os
import time
from pathlib import Path
from random import Random

import pytest
from tests.fuzz.apart import run_apart
from tests.fuzz.child import LONGEST_MUTANT_S, MOST_GROWTH_BYTES
from tests.fuzz.corpus import File, manifest_files, metadata_files, strings
from tests.fuzz.harness import Broken, Decoder, run
from tests.fuzz.mutate import mutate_bytes
from tests.fuzz.mutate_avro import any_avro
from tests.fuzz.mutate_json import any_json

from icefield.errors import CorruptFile

ABC = strings("abc")


def refuse_elsewhere(file: File) -> None:
    raise CorruptFile("s3://another/file", "no")


def fail_on_short(file: File) -> None:
    if len(file.data) < 2:
        raise IndexError("out of range")


def crash_on_short(file: File) -> None:
    if len(file.data) < 2:
        os.abort()


def hang(file: File) -> None:
    if len(file.data) < 2:
        time.sleep(10 * LONGEST_MUTANT_S)


def gobble(file: File) -> None:
    if len(file.data) < 2:
        assert len(bytearray(b"x") * (MOST_GROWTH_BYTES + (1 << 26))) > MOST_GROWTH_BYTES


FAILS = Decoder("fails", lambda: ABC, fail_on_short, mutate_bytes)
CRASHES = Decoder("crashes", lambda: ABC, crash_on_short, mutate_bytes)
HANGS = Decoder("hangs", lambda: ABC, hang, mutate_bytes)
GOBBLES = Decoder("gobbles", lambda: ABC, gobble, mutate_bytes)


def test_a_wrong_error_is_reported_with_seed_file_and_mutation() -> None:
    with pytest.raises(
        Broken, match=r"fails: seed \d+, file abc, mutation: .*: IndexError: out of range\nagain: python"
    ):
        run(FAILS, range(100))


def test_an_error_that_names_another_file_is_reported() -> None:
    with pytest.raises(Broken, match="names another location"):
        run(Decoder("elsewhere", lambda: ABC, refuse_elsewhere, mutate_bytes), range(1))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("FAILS", "ended with 1 at seed .*IndexError"),
        ("CRASHES", "was ended by SIGABRT at seed"),
        ("GOBBLES", "MiB of memory"),
        ("HANGS", "ended with 1 at seed .*Timeout.*in hang"),
    ],
)
def test_a_child_that_ends_badly_is_reported_with_its_seed(name: str, fault: str, tmp_path: Path) -> None:
    longest_s = 2 if name == "HANGS" else LONGEST_MUTANT_S
    with pytest.raises(Broken, match=f"(?s){fault}"):
        run_apart([f"tests.fuzz.test_harness:{name}"], tmp_path, "--count=40", f"--longest={longest_s}")


@pytest.mark.parametrize(
    ("mutate", "files"), [(any_json, metadata_files), (any_avro, manifest_files), (mutate_bytes, manifest_files)]
)
def test_the_same_seed_gives_the_same_damage_and_others_give_others(mutate: object, files: object) -> None:
    assert callable(mutate)
    assert callable(files)
    whole = [file.data for file in files()][:5]
    made = [mutate(whole[seed % 5], Random(seed), whole[0]) for seed in range(200)]
    assert made == [mutate(whole[seed % 5], Random(seed), whole[0]) for seed in range(200)]
    assert len({data for data, _ in made}) > 180
