"""Start-up of the command line and of the library, beside PyIceberg's command line.

    python -m benchmarks start_up

CPU time of a whole process with cached bytecode, the best of some rounds that take turns: user and system time of the
child. The lake has three tables of some snapshots; PyIceberg reads the same SQLite catalog.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pyarrow as pa

import icefield

ROUNDS = 5
PYTHON = sys.executable
ICEFIELD = [PYTHON, "-m", "icefield"]
PYICEBERG = [str(Path(PYTHON).with_name("pyiceberg")), "--catalog", "icefield"]
COMMANDS: dict[str, list[str]] = {
    "python -c pass": [PYTHON, "-c", "pass"],
    "import icefield": [PYTHON, "-c", "import icefield"],
    "from icefield import connect": [PYTHON, "-c", "from icefield import connect"],
    "icefield --help": [*ICEFIELD, "--help"],
    "icefield --version": [*ICEFIELD, "--version"],
    "icefield tables": [*ICEFIELD, "tables"],
    "icefield describe": [*ICEFIELD, "describe", "a.t0"],
    "icefield snapshots": [*ICEFIELD, "snapshots", "a.t0"],
    "icefield properties": [*ICEFIELD, "properties", "a.t0"],
    "icefield refs": [*ICEFIELD, "refs", "a.t0"],
    "icefield log": [*ICEFIELD, "log", "a.t0"],
    "icefield files": [*ICEFIELD, "files", "a.t0"],
    "icefield count": [*ICEFIELD, "count", "a.t0"],
    "icefield query": [*ICEFIELD, "query", "a.t0"],
    "pyiceberg --help": [*PYICEBERG, "--help"],
    "pyiceberg list": [*PYICEBERG, "list", "a"],
    "pyiceberg describe": [*PYICEBERG, "describe", "--entity", "table", "a.t0"],
}


def run() -> None:
    """Print CPU ms of each process."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        lake = icefield.connect(folder / "lake", durable=False)
        for at in range(3):
            table = lake.create_table(f"a.t{at}", "id long, amount double")
            for _ in range(3):
                table.append(pa.table({"id": [1, 2], "amount": [1.5, 2.5]}))
        lake.close()
        best: dict[str, float] = {}
        for _ in range(ROUNDS):
            for what, command in COMMANDS.items():
                best[what] = min(best.get(what, float("inf")), _cpu_ms(command, folder))
    for what, ms in best.items():
        print(f"{what:30} {ms:7.0f} ms")


def _cpu_ms(command: list[str], folder: Path) -> float:
    environment = {
        **{key: value for key, value in os.environ.items() if not key.startswith(("ICEFIELD", "PYICEBERG"))},
        "PYICEBERG_CATALOG__ICEFIELD__TYPE": "sql",
        "PYICEBERG_CATALOG__ICEFIELD__URI": f"sqlite:///{folder}/lake/catalog.db",
        "PYTHONDONTWRITEBYTECODE": "",
    }
    process = subprocess.Popen(
        command, cwd=folder, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    said = process.stderr.read() if process.stderr else ""
    _, status, used = os.wait4(process.pid, 0)
    if os.waitstatus_to_exitcode(status):
        sys.exit(f"{' '.join(command[-3:])} failed: {said}")
    return (used.ru_utime + used.ru_stime) * 1000
