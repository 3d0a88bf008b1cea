"""Write the lock files: every package of every environment, pinned, with the hashes of its files, for all platforms.

    python3 scripts/lock.py            keep the pins that still fit, add and drop what pyproject.toml and *.in ask for
    python3 scripts/lock.py --upgrade  take the newest versions that fit together

A lock names no host and no place: the reader's own settings of pip say where packages come from, the hashes say which.
"""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
OLDEST_PYTHON = "3.11"
# Lock file: what it is resolved from. The site imports the project from .venv, so it comes after the lock of that.
LOCKS = {
    "requirements/compiler.lock": ("requirements/compiler.in",),
    "requirements/dev.lock": ("pyproject.toml", "--extra=jre", "--extra=spark", "--group=pyproject.toml:dev"),
    "requirements/interop.lock": ("requirements/interop.in",),
    "requirements/locker.lock": ("requirements/locker.in",),
    "requirements/pip.lock": ("requirements/pip.in",),
    "requirements/site.lock": ("requirements/site.in", "--constraint=requirements/dev.lock"),
}


def main() -> None:
    """Resolve every lock with a pinned uv in an environment that is thrown away afterwards."""
    with tempfile.TemporaryDirectory() as scratch:
        uv = install_uv(Path(scratch) / "venv")
        for lock, sources in LOCKS.items():
            _compile(uv, lock, *sources, *sys.argv[1:])
            _check(ROOT / lock)


def install_uv(environment: Path) -> Path:
    """Install the pinned uv into an environment of its own; return its path."""
    subprocess.run([sys.executable, "-m", "venv", str(environment)], check=True)
    pip = [str(environment / "bin" / "python"), "-I", "-m", "pip", "install", "--quiet", "--require-hashes"]
    subprocess.run([*pip, "--requirement", str(ROOT / "requirements" / "locker.lock")], check=True)
    return environment / "bin" / "uv"


def _compile(uv: Path, lock: str, *arguments: str) -> None:
    options = [
        "--universal",
        f"--python-version={OLDEST_PYTHON}",
        "--generate-hashes",
        "--no-annotate",
        "--no-emit-index-url",
        "--no-emit-find-links",
        "--quiet",
        f"--output-file={lock}",
    ]
    # A directory of wheels on this machine must not decide what others get.
    settings = {key: value for key, value in os.environ.items() if key not in ("UV_FIND_LINKS", "PIP_FIND_LINKS")}
    settings["UV_CUSTOM_COMPILE_COMMAND"] = "make lock"
    subprocess.run([str(uv), "pip", "compile", *options, *arguments], cwd=ROOT, env=settings, check=True)


def _check(lock: Path) -> None:
    """Refuse a lock that names a host or a directory."""
    for number, line in enumerate(lock.read_text().splitlines(), 1):
        if re.search(r"://|@ |^-|\bfile:", line.strip()) and not line.strip().startswith("--hash=sha256:"):
            sys.exit(f"{lock.name}:{number} names a place: {line}")


if __name__ == "__main__":
    main()
