"""icefield completion, and python -m icefield."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.cli.conftest import Icefield


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_script_is_printed_for_each_shell(icefield: Icefield, shell: str) -> None:
    shown = icefield("completion", shell)
    assert (shown.code, "_ICEFIELD_COMPLETE" in shown.out) == (0, True)
    assert icefield("completion", shell, "--json").json["script"].strip() == shown.out.strip()


def test_another_shell_is_refused(icefield: Icefield) -> None:
    assert icefield("completion", "cmd").code == 1


def test_bash_completes_commands_and_options(tmp_path: Path) -> None:
    script = Path(sys.executable).with_name("icefield")
    for words, wanted in (
        ("icefield tab", "tables"),
        ("icefield evolve wid", "widen"),
        ("icefield create --lik", "--like"),
    ):
        environment = {"COMP_WORDS": words, "COMP_CWORD": str(words.count(" ")), "_ICEFIELD_COMPLETE": "bash_complete"}
        done = subprocess.run(
            [script], env={**os.environ, **environment}, cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert wanted in done.stdout, done


def test_the_package_runs_as_a_module(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "icefield", "--help"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (done.returncode, "icefield" in done.stdout) == (0, True)
