"""Run damaged files through a decoder and hold it to its promise: decode, or refuse with an error of its own.

The damage comes from a seed, so a failing mutant can be made again:

    python -m tests.fuzz.child <decoder> --first <seed> --count 1
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from tests.effort import DEEP, scaled
from tests.fuzz.corpus import File
from tests.fuzz.mutate import Mutation
from tests.kernels import use_engine

from icefield.errors import CorruptFile, IcefieldError

LOCATION = "s3://lake/fuzz/damaged"


@dataclass(frozen=True)
class Decoder:
    """A decoder under test.

    normal, many: how many mutants are tried in this process and in one of their own; ICEFIELD_EFFORT multiplies the
    latter.
    refusals: what it may raise; pure helpers say ValueError.
    """

    name: str
    files: Callable[[], Sequence[File]]
    decode: Callable[[File], Any]
    mutate: Mutation
    normal: int = 400
    many: int = 600
    refusals: tuple[type[Exception], ...] = (IcefieldError,)
    engine: str = "compiled"
    child: bool = False
    """Foreign code decodes here, which may take the process down with it."""

    def mutants(self) -> int:
        """Return how many mutants are tried in a process of their own."""
        return scaled(4 * self.many if DEEP else self.many)


@dataclass
class Outcome:
    """How many mutants went which way."""

    decoded: int = 0
    refused: int = 0


class Broken(AssertionError):
    """A mutant that was neither decoded nor refused."""


def run(decoder: Decoder, seeds: Iterable[int], before: Callable[[int], None] = lambda seed: None) -> Outcome:
    """Try the mutants of some seeds; `before` is called with the next one."""
    outcome, files = Outcome(), decoder.files()
    with use_engine(decoder.engine):
        for seed in seeds:
            before(seed)
            if _survives(decoder, files, seed):
                outcome.decoded += 1
            else:
                outcome.refused += 1
    return outcome


def check_sound(decoder: Decoder) -> None:
    """Decode every file as it is: a corpus that is refused unharmed would test nothing."""
    with use_engine(decoder.engine):
        for file in decoder.files():
            decoder.decode(file)


def _survives(decoder: Decoder, files: Sequence[File], seed: int) -> bool:
    rng = Random(seed)
    file, other = rng.choice(files), rng.choice(files)
    data, what = decoder.mutate(file.data, rng, other.data)
    try:
        decoder.decode(File(file.name, data))
    except decoder.refusals as error:
        if isinstance(error, CorruptFile) and error.location != LOCATION and not decoder.child:
            raise Broken(_told(decoder, seed, file, what, "the error names another location")) from error
        return False
    except Exception as error:
        raise Broken(_told(decoder, seed, file, what, f"{type(error).__name__}: {error}"[:300])) from error
    return True


def _told(decoder: Decoder, seed: int, file: File, what: str, fault: str) -> str:
    again = f"python -m tests.fuzz.child {decoder.name} --first {seed} --count 1"
    return f"{decoder.name}: seed {seed}, file {file.name}, mutation: {what}: {fault}\nagain: {again}"
