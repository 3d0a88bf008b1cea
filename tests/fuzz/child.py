"""Run mutants in a process of their own, which may crash, hang or eat memory without taking the tests along.

    python -m tests.fuzz.child metadata --first 0 --count 100000

Without a count there are as many as in the normal run, or with --many as in the test with many. Prints one line of JSON
for each decoder. A mutant that takes too long ends the process with a traceback of where it hung; one that asks for too
much memory fails with MemoryError, as with any other wrong error. The file `--note` holds the seed at work.
"""

import argparse
import faulthandler
import json
import mmap
import resource
import sys
from collections.abc import Callable
from pathlib import Path

from tests.fuzz.harness import Broken, Decoder, check_sound, run
from tests.fuzz.registry import find_decoder
from tests.kernels import is_sanitized

LONGEST_MUTANT_S = 30
MOST_GROWTH_BYTES = 400 * 1024 * 1024
MOST_ADDRESSES_BYTES = 8 * 1024**3
_WATCHED_TOGETHER = 64
SEED_BYTES = 8


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("decoders", nargs="+")
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int)
    parser.add_argument("--many", action="store_true")
    parser.add_argument("--longest", type=float, default=LONGEST_MUTANT_S, help="seconds that a mutant may take")
    parser.add_argument("--note", type=Path)
    options = parser.parse_args()
    watch = _watch(options.note, options.longest)
    try:
        for decoder in map(find_decoder, options.decoders):
            count = options.count or (decoder.mutants() if options.many else decoder.normal)
            seeds = range(options.first, options.first + count)
            print(json.dumps({"decoder": decoder.name} | _tried(decoder, seeds, watch)), flush=True)
    except Broken as error:
        print(error, file=sys.stderr)
        return 1
    finally:
        faulthandler.cancel_dump_traceback_later()
    return 0


def _tried(decoder: Decoder, seeds: range, watch: Callable[[int], None]) -> dict[str, int]:
    check_sound(decoder)
    before = _peak_bytes()
    if not is_sanitized():
        resource.setrlimit(resource.RLIMIT_AS, (MOST_ADDRESSES_BYTES, MOST_ADDRESSES_BYTES))
    outcome = run(decoder, seeds, watch)
    grown = _peak_bytes() - before
    if grown > MOST_GROWTH_BYTES:
        raise Broken(f"{decoder.name}: the mutants took {grown >> 20} MiB of memory")
    return {"decoded": outcome.decoded, "refused": outcome.refused, "grown_mib": grown >> 20}


def _watch(note: Path | None, longest_s: float) -> Callable[[int], None]:
    """Return what notes the seed at work, and winds the watchdog up now and then (a thread each time)."""
    kept = _shared(note) if note else mmap.mmap(-1, SEED_BYTES)

    def watch(seed: int) -> None:
        kept[:] = seed.to_bytes(SEED_BYTES, "little")
        if seed % _WATCHED_TOGETHER == 0:
            faulthandler.dump_traceback_later(longest_s, exit=True)

    watch(0)
    return watch


def _shared(note: Path) -> mmap.mmap:
    note.write_bytes(bytes(SEED_BYTES))
    with note.open("r+b") as file:
        return mmap.mmap(file.fileno(), SEED_BYTES)


def _peak_bytes() -> int:
    status = Path("/proc/self/status")
    if status.exists():
        # Not getrusage: its peak is that of the process that began this one, if that was larger.
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM:"))
        return int(line.split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


if __name__ == "__main__":
    sys.exit(main())
