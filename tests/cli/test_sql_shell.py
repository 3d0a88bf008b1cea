"""The shell of `icefield sql`, on a real terminal."""

import os
import pty
import re
import select
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cli.conftest import Icefield

import icefield
from icefield.cli.sql.completion import Names, complete
from icefield.cli.sql.runner import StatementRunner
from icefield.cli.sql.shell import Shell, is_complete
from icefield.lake import Lake

PROMPT = "icefield> "
COMMAND = [sys.executable, "-c", "from icefield.cli.main import main; main()", "sql", "--engine", "local"]


class Terminal:
    """A shell on a terminal of 60 columns."""

    def __init__(self, folder: Path) -> None:
        known = {key: value for key, value in os.environ.items() if key != "ICEFIELD_LAKE"}
        more = {"NO_COLOR": "1", "TERM": "dumb", "COLUMNS": "60", "XDG_STATE_HOME": str(folder / "state")}
        # setsid makes the terminal that of the process, so that it gets the signals of its keys. A fork of this process
        # would run what other libraries do in forks.
        self._terminal, inside = pty.openpty()
        self._process = subprocess.Popen(
            ["setsid", "--ctty", "--wait", *COMMAND],
            stdin=inside,
            stdout=inside,
            stderr=inside,
            cwd=folder,
            env=known | more,
        )
        os.close(inside)

    def read(self, until: str = PROMPT, seconds: float = 60) -> str:
        """Read what is shown, up to a text."""
        shown, end = "", time.monotonic() + seconds
        while not re.sub(r"\x1b\[\?2004[hl]", "", shown).endswith(until):
            assert time.monotonic() < end, f"{until!r} did not come after {shown!r}"
            if select.select([self._terminal], [], [], 1)[0]:
                try:
                    shown += os.read(self._terminal, 65_536).decode()
                except OSError:
                    break
        return shown.replace("\r\n", "\n")

    def type(self, text: str, until: str = PROMPT) -> str:
        """Type a text, and read what is shown then."""
        os.write(self._terminal, text.encode())
        return self.read(until)

    def end(self) -> int:
        """Wait for the end, and return the exit code."""
        return self._process.wait()

    def interrupt(self) -> str:
        """Press Ctrl-C when the shell waits for a key: after the prompt and before that, Python takes no notice."""
        while Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(") ")[2][0] != "S":
            time.sleep(0.01)
        return self.type("\x03")

    def close(self) -> None:
        os.close(self._terminal)
        self._process.kill()
        self._process.wait()


@pytest.fixture
def terminal(orders: Icefield, tmp_path: Path) -> Iterator[Terminal]:
    opened = Terminal(tmp_path)
    yield opened
    opened.close()


@pytest.mark.slow
def test_a_conversation(terminal: Terminal, tmp_path: Path) -> None:
    assert "\\? shows help" in terminal.read()
    assert "shop.orders" in terminal.type("\\d\n")
    terminal.type("SELECT id,\n", "-> ")
    shown = terminal.type("name FROM shop.orders WHERE name = 'grace'; -- all\n")
    assert " 2  grace\n" in shown
    assert re.search(r"1 row \(\d+\.\d\d s\)", shown)
    shown = terminal.type("SELECT nme FROM shop.orders;\n")
    assert "error:" in shown
    assert "^^^" in shown
    terminal.type("SELECT 'not closed;\n", "-> ")
    terminal.type("\\q\n", "-> ")
    assert "grace" not in terminal.interrupt()
    assert "ada" in terminal.type("SELECT min(name) FROM sh\t;\n")
    assert "no command \\x" in terminal.type("\\x\n")
    terminal.type("SELECT id FROM\n", "-> ")
    assert "shop.orders" in terminal.type("\\d\n", "-> ")
    assert "ada" not in terminal.type("shop.orders;\n")
    terminal.type("SELECT\n", "-> ")
    terminal.type("\\q\n", "")
    assert terminal.end() == 0
    history = (tmp_path / "state" / "icefield" / "sql_history").read_text()
    assert "SELECT min(name) FROM shop.orders" in history


def test_an_error_that_nobody_foresaw_ends_the_statement_and_not_the_shell(memory_lake: Lake) -> None:
    ran: list[str] = []
    reported: list[str] = []

    def run(_: StatementRunner, text: str) -> None:
        ran.append(text.strip())
        if text.strip() == "SELECT 1":
            raise RuntimeError("an error of Spark")

    shell = Shell(StatementRunner(memory_lake, "local", {}), run, lambda error: reported.append(str(error)))
    shell.take("SELECT 1; SELECT 2;")
    shell.take("SELECT 3;")
    assert (ran, reported) == (["SELECT 1", "SELECT 3"], ["an error of Spark"])


@pytest.mark.slow
def test_a_running_query_is_interrupted_and_an_open_transaction_rolled_back(terminal: Terminal, tmp_path: Path) -> None:
    terminal.read()
    terminal.type("BEGIN;\n")
    assert "rows_deleted" in terminal.type("DELETE FROM shop.orders;\n")
    terminal.type("SELECT count(*) FROM range(10000000000) a, range(1000) b WHERE a.range + b.range = 1;\n", "")
    time.sleep(1)
    assert "error: interrupted" in terminal.type("\x03")
    assert "0" in terminal.type("SELECT count(*) FROM shop.orders;\n")
    terminal.type("\\q\n", "The open transaction was rolled back.\n")
    assert terminal.end() == 0
    with icefield.connect(tmp_path / "lake") as lake:
        assert lake.table("shop.orders").count() == 4


@pytest.mark.slow
def test_wide_rows_fit_the_terminal_and_control_d_leaves(terminal: Terminal) -> None:
    terminal.read()
    shown = terminal.type("SELECT repeat('x', 100) AS a, repeat('y', 100) AS b;\n")
    rows = [line for line in shown.splitlines() if line.startswith("xxx")]
    assert len(rows) == 1
    assert len(rows[0]) <= 60
    assert rows[0].count("…") == 2
    terminal.type("\x04", "")
    assert terminal.end() == 0


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT 1;", True),
        ("SELECT 1; ", True),
        ("SELECT 1; -- done", True),
        ("SELECT 1", False),
        ("SELECT ';", False),
        ("SELECT 1 /* ;", False),
        ("SELECT 1; SELECT", False),
        ("SELECT `;`", False),
        ("-- a comment", True),
    ],
)
@pytest.mark.every_case
def test_a_statement_is_complete_with_its_semicolon(text: str, expected: bool) -> None:
    assert is_complete(text) is expected


@pytest.fixture
def names(memory_lake: Lake) -> Names:
    memory_lake.create_table("shop.orders", "id long, customer string")
    memory_lake.create_table("shop.customers", "id long, city string")
    memory_lake.create_view("depot.v", "SELECT 1 AS one", schema="one int")
    return Names(memory_lake)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT * FROM shop.o", ["shop.orders"]),
        ("SELECT * FROM SHOP.O", ["shop.orders"]),
        ("SELECT * FROM ", ["shop.customers", "shop.orders", "depot.v"]),
        ("sel", ["select "]),
        ("SEL", ["SELECT "]),
        ("SELECT * FROM shop.orders WHERE cu", ["customer"]),
        ("SELECT o.cu", []),
        ("SELECT * FROM shop.orders o WHERE o.i", ["o.id"]),
        ("SELECT one", []),
        ("SELECT * FROM depot.v WHERE on", ["one", "on "]),
    ],
)
@pytest.mark.every_case
def test_words_are_completed(names: Names, text: str, expected: list[str]) -> None:
    assert complete(text, names) == expected


def test_a_lake_that_cannot_be_read_completes_keywords(memory_lake: Lake) -> None:
    memory_lake.create_table("shop.orders", "id long")
    names = Names(memory_lake)
    assert names.columns("shop.nothing") == []
    assert "WHERE " in complete("SELECT * FROM shop.nothing WH", names)
