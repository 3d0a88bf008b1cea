"""Output on a real terminal of 60 columns: it fits, and has no codes with NO_COLOR."""

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest
from tests.cli.conftest import Icefield

from icefield.cli.fitting import fitted_widths, row_blocks

COLUMNS = 60
CODES = re.compile(r"\x1b\[[0-9;]*m")


def on_terminal(folder: Path, *arguments: str, **variables: str) -> str:
    """Run a command on a terminal, and return what it wrote there."""
    own, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, COLUMNS, 0, 0))
    environment = {key: value for key, value in os.environ.items() if key not in ("COLUMNS", "LINES", "NO_COLOR")}
    environment |= {"TERM": "xterm-256color", **variables}
    command = [sys.executable, "-m", "icefield", *arguments]
    with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, cwd=folder, env=environment) as process:
        os.close(theirs)
        written = _read_all(own)
    os.close(own)
    assert process.returncode == 0
    return written.decode().replace("\r", "")


def _read_all(terminal: int) -> bytes:
    written = b""
    while True:
        try:
            read = os.read(terminal, 65_536)
        except OSError:  # how Linux says that nobody writes any more
            return written
        if not read:
            return written
        written += read


@pytest.mark.slow
def test_tables_fit_a_narrow_terminal_and_numbers_are_whole(orders: Icefield, tmp_path: Path) -> None:
    ids = [each["snapshot-id"] for each in orders("snapshots", "shop.orders", "--json").json]
    shown = {name: on_terminal(tmp_path, name, "shop.orders") for name in ("files", "snapshots", "log", "describe")}
    for name in ("files", "snapshots", "log"):
        assert max(map(len, CODES.sub("", shown[name]).splitlines())) <= COLUMNS, name
    assert all(each in shown[name] for each in ids for name in ("snapshots", "log"))
    assert CODES.search(shown["files"])
    assert "…" in shown["files"]
    assert [line for line in shown["describe"].splitlines() if line != line.rstrip()] == []


@pytest.mark.slow
def test_no_color_leaves_no_codes(orders: Icefield, tmp_path: Path) -> None:
    assert "\x1b" not in on_terminal(tmp_path, "files", "shop.orders", NO_COLOR="1")


def test_cells_of_whole_columns_are_never_cut() -> None:
    rows = [["1234567890123456789", "a" * 80]]
    assert fitted_widths(["snapshot", "note"], rows, 60, [0]) == [19, 39]
    assert fitted_widths(["snapshot" * 5, "note"], rows, 60, [0]) == [29, 29]
    assert fitted_widths(["snapshot", "note"], rows, 24, [0]) is None
    assert fitted_widths(["snapshot", "note"], rows, None, [0]) == [19, 80]
    assert row_blocks(["a", "long"], [["1", "x"]]) == "row 1\na     1\nlong  x"
