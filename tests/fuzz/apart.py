"""Start mutants in a child process and say what became of it."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.fuzz.harness import Broken

ROOT = Path(__file__).parents[2]
_SHOWN_CHARACTERS = 3000


def run_apart(
    names: Sequence[str], folder: Path, *options: str, environment: Mapping[str, str] | None = None
) -> list[dict[str, Any]]:
    """Return how the mutants of some decoders went, or raise Broken with the seed at which the child ended."""
    note = folder / "seed"
    command = [sys.executable, "-m", "tests.fuzz.child", *names, "--note", str(note), *options]
    ended = subprocess.run(
        command, cwd=ROOT, env=os.environ | (environment or {}), capture_output=True, text=True, check=False
    )
    outcomes = [json.loads(line) for line in ended.stdout.splitlines()]
    if ended.returncode:
        raise Broken(_told(ended, names[len(outcomes)], note))
    return outcomes


def _told(ended: "subprocess.CompletedProcess[str]", name: str, note: Path) -> str:
    code, seed = ended.returncode, int.from_bytes(note.read_bytes(), "little")
    how = f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with {code}"
    again = f"python -m tests.fuzz.child {name} --first {seed} --count 1"
    return f"{name}: the process {how} at seed {seed}\nagain: {again}\n{ended.stderr[-_SHOWN_CHARACTERS:]}"
