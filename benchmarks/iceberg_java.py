"""Iceberg Java, in the environment of `make interop-environment`: programs that print what they measured."""

import json
import os
import subprocess
import sys
from pathlib import Path

from benchmarks.spark_measure import Cost

JAVA = Path(__file__).parent.parent / ".venv-interop" / "bin" / "python"
MARK = "measured: "  # Spark, too, prints to standard output


def run_java(module: str, *arguments: str) -> dict[str, Cost]:
    """Run a module of benchmarks there, and return the costs that it prints, by name."""
    command = [str(JAVA), "-m", module, *arguments]
    done = subprocess.run(command, env=plain_environment(), stdout=subprocess.PIPE, text=True, check=False)
    marked = (json.loads(line.removeprefix(MARK)) for line in done.stdout.splitlines() if line.startswith(MARK))
    found = {name: Cost(**cost) for name, cost in marked}
    if done.returncode:
        print(f"Iceberg Java ended with {done.returncode} after {len(found)} works", file=sys.stderr)
    return found


def plain_environment() -> dict[str, str]:
    """Return the environment without variables that one Spark sets for another."""
    return {key: value for key, value in os.environ.items() if not key.startswith(("PYSPARK", "SPARK", "JAVA_HOME"))}
