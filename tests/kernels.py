"""Both forms of the Avro kernels, for tests that run each."""

import ctypes
import os
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from scripts.compile_kernel import NotCompiled, compile_kernel

from icefield.codec.avro import engine as avro_engine
from icefield.codec.avro.compiled import CompiledEngine
from icefield.codec.avro.engine import Engine, PlainEngine
from icefield.codec.avro.kernel import Blocks, Slots, Source
from icefield.codec.avro.library import load_library

# A library that takes the place of the one in the package: one that was compiled with sanitizers.
LIBRARY_VARIABLE = "ICEFIELD_TESTED_LIBRARY"


class ExactEngine(CompiledEngine):
    """The kernels in C over a copy of the data that ends with its last block.

    Otherwise the bytes behind it, which a buffer that has grown has many of, hide a read past the end.
    """

    def decode(self, source: Source, blocks: Blocks, slots: Slots) -> tuple[int, int]:
        exact = np.frombuffer(source.data, np.uint8)[: max(1, blocks.end.max(initial=0))].copy()
        return super().decode(source._replace(data=exact), blocks, slots)


def compiled_engine() -> CompiledEngine:
    """Return the kernels in C. A suite without them proves little, so that a missing library is an error."""
    if is_sanitized():
        return ExactEngine(ctypes.CDLL(os.environ[LIBRARY_VARIABLE]))
    return CompiledEngine(load_library())


def is_sanitized() -> bool:
    """Return whether C is checked by sanitizers, which reserve more addresses than any machine has memory."""
    return LIBRARY_VARIABLE in os.environ


ENGINES: Mapping[str, Callable[[], Engine]] = {"plain": PlainEngine, "compiled": compiled_engine}


@contextmanager
def use_engine(name: str) -> Iterator[None]:
    """Have one engine run all kernels."""
    before, engine = avro_engine.current_engine, ENGINES[name]()
    avro_engine.current_engine = lambda: engine
    try:
        yield
    finally:
        avro_engine.current_engine = before


def sanitized_kernel(folder: Path) -> dict[str, str]:
    """Compile C with gcc's sanitizers; return the environment of a process that runs it. Raises NotCompiled."""
    checks = ("-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-Wall", "-Wextra", "-Werror")
    made = compile_kernel(["gcc"], folder, checks)
    found = [_library_of_gcc(name) for name in ("libasan.so", "libubsan.so")]
    return {
        LIBRARY_VARIABLE: str(made),
        "LD_PRELOAD": " ".join(found),  # Python has no sanitizers, so that theirs must be there before anything else
        "ASAN_OPTIONS": "detect_leaks=0:quarantine_size_mb=16:allocator_may_return_null=1",
        "PYTHONMALLOC": "malloc",  # every array and every bytes object has borders of its own
    }


def _library_of_gcc(name: str) -> str:
    found = subprocess.run(["gcc", f"-print-file-name={name}"], capture_output=True, text=True, check=True).stdout
    if not Path(found.strip()).is_absolute():
        raise NotCompiled(f"gcc has no {name}")
    return found.strip()
