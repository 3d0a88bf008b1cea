"""Every example runs by itself in an empty directory, and prints what its docstring shows."""

import ast
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent.parent / "examples"
EXAMPLES = sorted(FOLDER.glob("*.py"))


def shown(example: Path) -> str:
    """Return what an example says that it prints."""
    docstring = ast.get_docstring(ast.parse(example.read_text())) or ""
    _, marker, output = docstring.partition("Prints:\n")
    assert marker, f"{example.name} does not say what it prints"
    return textwrap.dedent(output).strip() + "\n"


@pytest.mark.slow
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_prints_what_it_shows(example: Path, tmp_path: Path) -> None:
    environment = {key: value for key, value in os.environ.items() if not key.startswith("ICEFIELD_")}
    done = subprocess.run(
        [sys.executable, "-W", "error", str(example)],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == shown(example)


def test_every_example_is_listed() -> None:
    page = (FOLDER / "README.md").read_text()
    assert EXAMPLES
    assert [path.name for path in EXAMPLES if f"[{path.name}]({path.name})" not in page] == []
