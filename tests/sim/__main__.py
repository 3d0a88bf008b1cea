"""Run many seeds on all cores, or one with its trace.

python -m tests.sim --seeds 100000
python -m tests.sim --seed 123
python -m tests.sim --collectors --seeds 10000 --processes 2
"""

import argparse
import os
import sys
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field

from tests.sim.collecting import simulate_collectors
from tests.sim.run import AGAIN, simulate
from tests.sim.simulation import Failure, Outcome

CHUNK = 50
Simulate = Callable[[int], Outcome]


@dataclass
class Tally:
    """What became of some seeds."""

    swaps: int = 0
    fates: Counter[str] = field(default_factory=Counter)
    failures: dict[int, str] = field(default_factory=dict)

    def add(self, other: "Tally") -> None:
        self.swaps += other.swaps
        self.fates += other.fates
        self.failures |= other.failures


def run_seeds(first: int, count: int, run: Simulate) -> Tally:
    """Run some seeds in this process."""
    tally = Tally()
    for seed in range(first, first + count):
        try:
            outcome = run(seed)
        except Failure as failure:
            tally.failures[seed] = str(failure).partition("\n")[0]
        else:
            tally.swaps += outcome.swaps
            tally.fates.update(outcome.fates)
    return tally


def show(seed: int, run: Simulate) -> int:
    """Run one seed, and print what happened."""
    try:
        outcome = run(seed)
    except Failure as failure:
        print(failure)
        return 1
    print("\n".join(outcome.trace))
    print(f"seed {seed} holds: {outcome.swaps} swaps, history {outcome.digest}")
    return 0


def soak(first: int, count: int, processes: int, run: Simulate) -> int:
    """Run seeds on several cores, and print how it goes; stop at the first chunk with a failure."""
    total, done, started = Tally(), 0, time.monotonic()
    with ProcessPoolExecutor(processes) as pool:
        chunks: dict[Future[Tally], int] = {}
        for start in range(first, first + count, CHUNK):
            size = min(CHUNK, first + count - start)
            chunks[pool.submit(run_seeds, start, size, run)] = size
        for chunk in as_completed(chunks):
            total.add(chunk.result())
            done += chunks[chunk]
            rate = done / (time.monotonic() - started)
            print(f"\r{done} of {count} seeds, {rate:.1f} a second, {total.swaps} swaps", end="", file=sys.stderr)
            if total.failures:
                pool.shutdown(cancel_futures=True)
                break
    print(f"\n{done} seeds: {total.swaps} swaps, changes {dict(total.fates)}")
    more = "" if run is simulate else " --collectors"
    for seed, why in sorted(total.failures.items()):
        print(f"{why}\nagain: {AGAIN.format(seed=f'{seed}{more}')}")
    return 1 if total.failures else 0


def main() -> int:
    parser = argparse.ArgumentParser(prog="make sim")
    parser.add_argument("--seed", type=int, help="run one seed, and print its trace")
    parser.add_argument("--seeds", type=int, default=int(os.environ.get("ICEFIELD_SIM_SEEDS", "100000")))
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--collectors", action="store_true", help="collectors that delete files with no grace at all")
    given = parser.parse_args()
    run = simulate_collectors if given.collectors else simulate
    if given.seed is not None:
        return show(given.seed, run)
    return soak(given.first, given.seeds, given.processes, run)


if __name__ == "__main__":
    sys.exit(main())
