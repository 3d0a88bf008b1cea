"""Standard streams that are closed, full, or a pipe that nobody reads: a clear end, and never a traceback."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

FULL = Path("/dev/full")
MAIN = "from icefield.cli.main import main; main()"
# Longer than any buffer: the write itself fails, not the flush at the end.
LONG = """
import sys
from icefield.cli.streams import open_streams, run_to_the_end
open_streams()
sys.exit(run_to_the_end(lambda: sys.stdout.write("x" * 10_000_000) and 0, lambda text: print(text, file=sys.stderr)))
"""
OTHERS = """
import os, sys
from icefield.cli.streams import open_streams
open_streams()
taken = os.open("taken", os.O_CREAT | os.O_WRONLY)
print("output")
sys.stdout.flush()
assert taken > 2, taken
"""


def run(program: str, *arguments: str, stdout: int, before: Callable[[], None] | None = None) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments],
        stdout=stdout,
        stderr=subprocess.PIPE,
        preexec_fn=before,
        check=False,
        text=True,
    )
    return done.returncode, done.stderr


@pytest.mark.skipif(not FULL.exists(), reason="no /dev/full")
@pytest.mark.parametrize("program", [MAIN, LONG], ids=["flush", "write"])
def test_a_full_disk_is_one_error(program: str) -> None:
    with FULL.open("wb") as full:
        code, said = run(program, "--help", stdout=full.fileno())
    assert (code, said.count("\n")) == (1, 1)
    assert "cannot write the output: No space left on device" in said


@pytest.mark.parametrize("program", [MAIN, LONG], ids=["flush", "write"])
def test_a_pipe_that_nobody_reads_ends_quietly(program: str) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        assert run(program, "--help", stdout=writing) == (1, "")
    finally:
        os.close(writing)


@pytest.mark.parametrize("closed", [(1,), (0, 1), (0,)], ids=str)
def test_a_command_without_stdout_does_its_work(closed: tuple[int, ...]) -> None:
    def close() -> None:
        for descriptor in closed:
            os.close(descriptor)

    assert run(MAIN, "--help", stdout=subprocess.DEVNULL, before=close) == (0, "")


def test_no_other_file_gets_the_number_of_a_closed_stream(tmp_path: Path) -> None:
    def close() -> None:
        os.chdir(tmp_path)
        os.closerange(0, 2)

    assert run(OTHERS, stdout=subprocess.DEVNULL, before=close) == (0, "")
    assert (tmp_path / "taken").read_bytes() == b""
