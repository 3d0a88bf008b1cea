"""The README is run: every command and every Python line, in order, in an empty directory."""

import doctest
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

README = Path(__file__).parent.parent / "README.md"
BLOCK = re.compile(r"```(console|python)\n(.*?)```", re.DOTALL)


def blocks() -> list[tuple[str, str]]:
    return BLOCK.findall(README.read_text())


def commands(block: str) -> list[tuple[str, str]]:
    """Split a transcript into commands, with their continuation lines, and what each prints."""
    found: list[tuple[list[str], list[str]]] = []
    for line in block.splitlines():
        if line.startswith("$ "):
            found.append(([line[2:]], []))
        elif line.startswith("> ") and not found[-1][1]:
            found[-1][0].append(line[2:])
        else:
            found[-1][1].append(line)
    return [("\n".join(command), "\n".join(output)) for command, output in found]


def fits(shown: str, printed: str) -> bool:
    """Compare text in which … stands for anything within a line."""
    pattern = "[^\n]*".join(re.escape(part) for part in shown.split("…"))
    return re.fullmatch(pattern, printed.strip("\n")) is not None


def run_command(command: str, folder: Path) -> str:
    scripts = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": scripts, "NO_COLOR": "1", "COLUMNS": "160"}
    environment.pop("ICEFIELD_LAKE", None)
    done = subprocess.run(
        ["bash", "-c", command], cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=120
    )
    # Talk on stderr is left out of the transcript, errors are not.
    return done.stdout if done.returncode == 0 else done.stdout + done.stderr


class _Checker(doctest.OutputChecker):
    """Compares as the transcripts are compared; blank lines at the end do not count."""

    def check_output(self, want: str, got: str, optionflags: int) -> bool:
        return fits(want.strip("\n"), got)


@pytest.mark.spark
def test_every_line_of_the_readme_does_what_it_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spark: object
) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for number, (kind, text) in enumerate(blocks()):
        if kind == "console":
            for command, shown in commands(text):
                printed = run_command(command, tmp_path)
                assert fits(shown, printed), f"$ {command}\nshould print\n{shown}\nbut printed\n{printed}"
        else:
            test = doctest.DocTestParser().get_doctest(text, names, f"README block {number}", str(README), 0)
            report: list[str] = []
            runner = doctest.DocTestRunner(checker=_Checker())
            runner.run(test, out=report.append, clear_globs=False)
            names = test.globs
            assert report == []


def test_the_checker_can_fail() -> None:
    assert fits("a … b", "a 1 b")
    assert not fits("a … b", "a 1 c")
    assert not fits("one", "one\ntwo")
    assert commands("$ x <<END\n> y\n> END\nout\n$ z\n") == [("x <<END\ny\nEND", "out"), ("z", "")]


def test_links_of_the_docs_lead_somewhere() -> None:
    root = README.parent
    for page in [README, *(root / "docs").rglob("*.md"), root / "CHANGELOG.md"]:
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"
