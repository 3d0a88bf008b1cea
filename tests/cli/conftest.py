"""What the tests of the command line share: runs of it in this process, and a lake with one small table."""

import json
import re
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.test_readme import README, blocks, commands, fits, run_command

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
def check_page(icefield: Icefield, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Run every command of a page: those of the command line alone in this process, others in a shell."""
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "160")

    def printed_by(command: str) -> str:
        if not re.fullmatch(r"icefield [^|&;<>$]*", command):
            return run_command(command, tmp_path)
        ran = icefield(*shlex.split(command)[1:])
        return ran.out if ran.code == 0 else ran.out + ran.err

    def check(page: str) -> None:
        for kind, text in blocks(README.parent / "docs" / page):
            for command, shown in commands(text) if kind == "console" else ():
                printed = printed_by(command)
                assert fits(shown, printed), f"$ {command}\nshould print\n{shown}\nbut printed\n{printed}"

    return check


@pytest.fixture
def orders(icefield: Icefield, tmp_path: Path) -> Icefield:
    """The same, with a table shop.orders of four rows on three days."""
    (tmp_path / "rows.jsonl").write_text(ROWS)
    assert icefield("create", "shop.orders", SCHEMA, "--partition-by", "day(ts)").code == 0
    assert icefield("ingest", "shop.orders", "rows.jsonl").code == 0
    return icefield
