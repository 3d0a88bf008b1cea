"""The README is run: every command and every Python line, in order, in an empty directory, and then once more.

The first run must print what the page shows. The second one finds a lake that is there already, so some answers differ
(a table that exists, more rows), but none is a crash: a command succeeds or says one error, and so does Python.
"""

import doctest
import os
import re
import subprocess
import sys
import zlib
from collections.abc import Callable, Container
from pathlib import Path

import pytest

from icefield.errors import IcefieldError

README = Path(__file__).parent.parent / "README.md"
VIEWS = README.parent / "docs" / "views.md"
BLOCK = re.compile(r"```(console|python)\n(.*?)```", re.DOTALL)
# Commands whose output says what is wrong; they exit with 1 then, without an error.
CHECKS = re.compile(r"icefield (fsck|doctor|report|upkeep)\b")


def blocks(page: Path = README) -> list[tuple[str, str]]:
    return BLOCK.findall(page.read_text())


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
    done = completed(command, folder)
    # Talk on stderr is left out of the transcript, errors are not.
    return done.stdout if done.returncode == 0 else done.stdout + done.stderr


def completed(command: str, folder: Path) -> "subprocess.CompletedProcess[str]":
    scripts = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": scripts, "NO_COLOR": "1", "COLUMNS": "160"}
    environment.pop("ICEFIELD_LAKE", None)
    return subprocess.run(
        ["bash", "-c", command], cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=120
    )


def run_again(
    page: Path,
    folder: Path,
    names: dict[str, object],
    run: "Callable[[str, Path], subprocess.CompletedProcess[str]]" = completed,
    kinds: Container[str] = ("console", "python"),
) -> list[str]:
    """Run a page on the lake that it left; return the errors that were said, each in one line."""
    said: list[str] = []
    for kind, text in blocks(page):
        if kind not in kinds:
            continue
        if kind == "console":
            for command, _ in commands(text):
                done = run(command, folder)
                assert done.returncode in (0, 1), f"$ {command}\n{done.stderr}"
                errors = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
                is_found = bool(CHECKS.match(command) and done.returncode and done.stdout.strip())
                assert len(errors) + is_found == done.returncode, f"$ {command}\n{done.stdout}{done.stderr}"
                said += errors
            continue
        for source in sources(text):
            try:
                exec(compile(source, page.name, "single"), names)
            except IcefieldError as error:
                said.append(f"error: {error}")
    return said


def sources(block: str) -> list[str]:
    """Return the statements of a block, with or without prompts."""
    examples = doctest.DocTestParser().get_examples(block)
    return [example.source for example in examples] or [
        f"{line}\n" for line in block.splitlines() if line.split("#")[0].strip()
    ]


class _Checker(doctest.OutputChecker):
    """Compares as the transcripts are compared; blank lines at the end do not count."""

    def check_output(self, want: str, got: str, optionflags: int) -> bool:
        return fits(want.strip("\n"), got)


def check_python(text: str, names: dict[str, object], where: str) -> dict[str, object]:
    """Run a block with prompts, which must print what it shows; return the names that it leaves."""
    # doctest finds the lines of a traceback by the name, which has to differ from block to block.
    name = f"{where}, {zlib.crc32(text.encode()):08x}"
    test = doctest.DocTestParser().get_doctest(text, names, name, str(README), 0)
    report: list[str] = []
    doctest.DocTestRunner(checker=_Checker()).run(test, out=report.append, clear_globs=False)
    assert report == [], "".join(report)
    return test.globs


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
            names = check_python(text, names, f"README block {number}")
    said = run_again(README, tmp_path, names)
    assert [line for line in said if "amout" not in line] == ["error: the name shop.orders is already used by a table"]
    # Twice, since the page ends with the view dropped.
    assert run_again(VIEWS, tmp_path, names) == run_again(VIEWS, tmp_path, names) == []


def test_the_checker_can_fail() -> None:
    assert fits("a … b", "a 1 b")
    assert not fits("a … b", "a 1 c")
    assert not fits("one", "one\ntwo")
    assert commands("$ x <<END\n> y\n> END\nout\n$ z\n") == [("x <<END\ny\nEND", "out"), ("z", "")]


def test_files_that_contributors_are_told_of_are_there() -> None:
    root = README.parent
    for page in (root / "CONTRIBUTING.md", root / "docs" / "style.md", root / "tests" / "README.md"):
        for name in re.findall(r"`([\w./]+\.(?:py|toml|txt|md))`", page.read_text()):
            places = [root / place / name for place in ("", "src/icefield", "tests")]
            assert any(place.exists() for place in places), f"{page.name} names {name}"


def test_every_target_of_make_is_shown_to_contributors() -> None:
    targets = re.findall(r"^\t@echo 'make (\w+) ", (README.parent / "Makefile").read_text(), re.MULTILINE)
    page = (README.parent / "CONTRIBUTING.md").read_text()
    assert targets
    assert [name for name in targets if f"`make {name}`" not in page] == []
