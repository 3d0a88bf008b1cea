"""Lines of the report on row-level changes: a cost, its ratio to a baseline, the bar, and whether it is met."""

import json
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field

from benchmarks.iceberg_java import plain_environment
from benchmarks.spark_measure import Cost

HEADER = f"  {'':44}{'CPU s':>8}{'wall s':>8}{'ratio':>8}{'bar':>8}  {'':9}{'MiB':>7}  peers"


@dataclass(frozen=True)
class Line:
    """A piece of work. baseline: what the ratio is to. bar: the most that the ratio may be. below: CPU seconds
    that it must not reach, by the name of a peer. peers: what they need, in words.
    """

    name: str
    cost: Cost
    baseline: Cost | None = None
    bar: float | None = None
    below: Mapping[str, float] = field(default_factory=dict)
    peers: str = ""

    @property
    def ratio(self) -> float | None:
        """CPU in relation to the baseline."""
        return None if self.baseline is None else self.cost.cpu / self.baseline.cpu

    @property
    def verdict(self) -> str:
        """Whether the bar is met; nothing without a bar, or without what it is measured by."""
        judged = [self.cost.cpu < limit for limit in self.below.values()]
        if self.ratio is not None and self.bar is not None:
            judged.append(self.ratio <= self.bar)
        if not judged:
            return "-"
        return "met" if all(judged) else "not met"

    def __str__(self) -> str:
        ratio = "-" if self.ratio is None else f"{self.ratio:.3f}"
        bar = "-" if self.bar is None else f"{self.bar:.3f}"
        limits = [f"below {name} {cpu:.2f} s" for name, cpu in self.below.items()]
        peers = "; ".join(filter(None, [self.peers, *limits]))
        memory = f"{self.cost.python_mib:,.0f}" if self.cost.python_mib else "-"
        return (
            f"  {self.name:44}{self.cost.cpu:8.2f}{self.cost.wall:8.2f}{ratio:>8}{bar:>8}  {self.verdict:9}{memory:>7}"
            f"  {peers}"
        )


def run_alone(name: str, folder: str, kind: str, most_seconds: float) -> Cost | str:
    """Run one MERGE in a process of its own; return its cost, or why there is none."""
    command = [sys.executable, "-m", "benchmarks.change_local", name, folder, kind]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, env=plain_environment(), timeout=most_seconds, check=False
        )
    except subprocess.TimeoutExpired:
        return f"{name} not done after {most_seconds:.0f} s"
    if done.returncode:
        return f"{name} not run: {(done.stderr.strip().splitlines() or ['?'])[-1]}"
    return Cost(**json.loads(done.stdout.splitlines()[-1]))
