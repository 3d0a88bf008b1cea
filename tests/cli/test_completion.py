"""icefield completion, and python -m icefield."""

import os
import shutil
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


# Each asks its shell what completes a line, by the function that the script defines.
BASH = """
eval "$(icefield completion bash)"
COMP_WORDS=($1); COMP_CWORD=$(( ${#COMP_WORDS[@]} - 1 ))
_icefield_completion icefield
printf '%s\\n' "${COMPREPLY[@]}"
"""
ZSH = """
compdef() { : }
_describe() { print -rl -- ${(P)3} }
compadd() { print -rl -- ${(P)argv[-1]} }
eval "$(icefield completion zsh)"
words=(${=1}); CURRENT=${#words}
_icefield_completion
"""
FISH = """
icefield completion fish | source
complete -C $argv[1]
"""
SHELLS = {"bash": ["-c", BASH, "bash"], "zsh": ["-f", "-c", ZSH, "zsh"], "fish": ["--no-config", "-c", FISH]}


@pytest.mark.slow
@pytest.mark.every_case
@pytest.mark.parametrize("shell", SHELLS)
def test_a_shell_completes_commands_options_and_tables(orders: Icefield, tmp_path: Path, shell: str) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"there is no {shell} here")
    program = tmp_path / "bin" / "icefield"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m icefield "$@"\n')
    program.chmod(0o755)
    environment = {**os.environ, "PATH": f"{program.parent}{os.pathsep}{os.environ['PATH']}", "HOME": str(tmp_path)}
    for line, wanted in (
        ("icefield tab", "tables"),
        ("icefield evolve wid", "widen"),
        ("icefield create --lik", "--like"),
        ("icefield completion fi", "fish"),
        ("icefield describe sh", "shop.orders"),
        ("icefield --lake lake count shop.o", "shop.orders"),
        ("icefield --lake nowhere count shop.o", ""),
    ):
        done = subprocess.run(
            [shell, *SHELLS[shell], line], env=environment, cwd=tmp_path, capture_output=True, text=True, check=False
        )
        found = [each.split("\t")[0].split(":")[0] for each in done.stdout.split("\n") if each.strip()]
        assert (found, done.stderr) == ([wanted] if wanted else [], ""), line


def test_the_package_runs_as_a_module(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "icefield", "--help"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (done.returncode, "icefield" in done.stdout) == (0, True)
