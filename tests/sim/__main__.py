"""Run many seeds on all cores, or one with its trace.

python -m tests.sim --seeds 100000
python -m tests.sim --seed 123
python -m tests.sim --collectors --seeds 10000 --processes 2
python -m tests.sim --seeds 100000 --log sim.log      hours, which may be interrupted: the same command goes on
"""

import argparse
import gc
import json
import os
import sys
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field
from pathlib import Path

from tests.sim.collecting import simulate_collectors
from tests.sim.run import AGAIN, simulate
from tests.sim.scheduler import Killed
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
        except (Exception, Killed) as error:  # of the simulation itself: the other seeds go on
            tally.failures[seed] = repr(error)
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


@dataclass
class Log:
    """The chunks of seeds that are done, a line of JSON each; without a file it is forgotten."""

    path: Path | None

    def done(self) -> dict[int, Tally]:
        """Return what became of the chunks so far, by their first seed."""
        if self.path is None or not self.path.exists():
            return {}
        return dict(map(_parse, self.path.read_text().splitlines()))

    def add(self, first: int, tally: Tally) -> None:
        """Add a chunk."""
        if self.path is not None:
            with self.path.open("a") as file:
                file.write(json.dumps({"first": first, **vars(tally)}) + "\n")


def _parse(line: str) -> tuple[int, Tally]:
    chunk = json.loads(line)
    failures = {int(seed): why for seed, why in chunk["failures"].items()}
    return chunk["first"], Tally(chunk["swaps"], Counter(chunk["fates"]), failures)


def soak(seeds: range, processes: int, run: Simulate, log: Log) -> int:
    """Run seeds on several cores, and print how it goes; without a log, stop at the first chunk with a failure."""
    total, left, started = Tally(), len(seeds), time.monotonic()
    parts = {part[0]: part for part in (seeds[at : at + CHUNK] for at in range(0, len(seeds), CHUNK))}
    for first, known in log.done().items():
        left -= len(parts.pop(first, ()))
        total.add(known)
    begun = left
    # What is imported is never garbage.
    with ProcessPoolExecutor(processes, initializer=gc.freeze) as pool:
        chunks: dict[Future[Tally], range] = {
            pool.submit(run_seeds, first, len(part), run): part for first, part in parts.items()
        }
        for chunk in as_completed(chunks):
            part, tally = chunks[chunk], chunk.result()
            log.add(part[0], tally)
            total.add(tally)
            left -= len(part)
            rate = (begun - left) / (time.monotonic() - started)
            print(f"\r{left} seeds left, {rate:.1f} a second, {total.swaps} swaps", end="", file=sys.stderr)
            if total.failures and log.path is None:
                pool.shutdown(cancel_futures=True)
                break
    return _report(total, len(seeds) - left, "" if run is simulate else " --collectors")


def _report(total: Tally, done: int, more: str) -> int:
    print(f"\n{done} seeds: {total.swaps} swaps, changes {dict(total.fates)}")
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
    parser.add_argument(
        "--log", type=Path, help="a file of what is done, by which a run goes on; failures do not end it"
    )
    given = parser.parse_args()
    run = simulate_collectors if given.collectors else simulate
    if given.seed is not None:
        return show(given.seed, run)
    return soak(range(given.first, given.first + given.seeds), given.processes, run, Log(given.log))


if __name__ == "__main__":
    sys.exit(main())
