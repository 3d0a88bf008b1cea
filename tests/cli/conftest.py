"""What the tests of the command line share: runs of it in this process, and a lake with one small table."""

import io
import json
import re
import shlex
import subprocess
from collections.abc import Callable, Container
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.test_readme import README, blocks, check_python, commands, completed, fits, run_again

from icefield.cli.main import run

SCHEMA = "id long not null, ts timestamptz, name string"
ROWS = """
{"id": 1, "ts": "2026-01-05T09:00:00Z", "name": "ada"}
{"id": 2, "ts": "2026-01-05T11:00:00Z", "name": "grace"}
{"id": 3, "ts": "2026-01-06T08:00:00Z", "name": null}
{"id": 4, "ts": "2026-01-07T16:00:00Z", "name": "edsger"}
""".lstrip()


@dataclass(frozen=True)
class Ran:
    """What one run of the command line gave."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The document on stdout."""
        return json.loads(self.out)


Icefield = Callable[..., Ran]


class Terminal(io.StringIO):
    """Standard input with somebody who answers."""

    def isatty(self) -> bool:
        return True


def answer(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    """Answer the questions of the next commands."""
    monkeypatch.setattr("sys.stdin", Terminal(text))


@pytest.fixture
def icefield(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Icefield:
    """Run a command line in an empty directory."""
    monkeypatch.chdir(tmp_path)
    for name in ("ICEFIELD_LAKE", "ICEFIELD_DEBUG", "NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "no-configuration"))

    def call(*arguments: str) -> Ran:
        capsys.readouterr()
        code = run(arguments)
        return Ran(code, *capsys.readouterr())

    return call


@pytest.fixture
def check_page(icefield: Icefield, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Run the commands of a page, those of icefield in this process, and its Python; then all of them again."""
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "160")

    def run_one(command: str, folder: Path) -> "subprocess.CompletedProcess[str]":
        if not re.fullmatch(r"icefield (?:[^|&;<>$'\"]|'[^']*'|\"[^\"$]*\")*", command):
            return completed(command, folder)
        ran = icefield(*shlex.split(command)[1:])
        return subprocess.CompletedProcess(command, ran.code, ran.out, ran.err)

    def check(name: str, kinds: Container[str] = ("console", "python")) -> None:
        page, names = README.parent / "docs" / name, dict[str, object]()
        for kind, text in blocks(page):
            for command, shown in commands(text) if kind == "console" else ():
                done = run_one(command, tmp_path)
                printed = done.stdout if done.returncode == 0 else done.stdout + done.stderr
                assert fits(shown, printed), f"$ {command}\nshould print\n{shown}\nbut printed\n{printed}"
            if kind == "python" and kind in kinds and ">>> " in text:
                names = check_python(text, names, name)
        run_again(page, tmp_path, names, run_one, kinds)

    return check


@pytest.fixture
def orders(icefield: Icefield, tmp_path: Path) -> Icefield:
    """The same, with a table shop.orders of four rows on three days."""
    (tmp_path / "rows.jsonl").write_text(ROWS)
    assert icefield("create", "shop.orders", SCHEMA, "--partition-by", "day(ts)").code == 0
    assert icefield("ingest", "shop.orders", "rows.jsonl").code == 0
    return icefield
