"""Run tests with the lowest or the newest versions of the dependencies that pyproject.toml allows.

    python3 -m scripts.versions                        both, one case of each test that is not slow
    python3 -m scripts.versions lowest -- tests/cli    one of them, with arguments for pytest

The lock has one version of each package, and users have others. Each environment is resolved and built by uv in
`build/`; the interpreter is the one that runs this script.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from scripts.lock import LOCKS, ROOT, install_uv

# As uv names them. Of packages that pyproject.toml does not name, both have the newest.
RESOLUTIONS = {"lowest": "lowest-direct", "newest": "highest"}
# Too large for the lock: 400 MB for a verb each.
MORE = {"newest": ("daft", "ray[data]")}
DEFAULT_TESTS = ("-m", "not interop and not slow")


def main() -> int:
    """Build the environments that the command line names, and run the tests in each; return how many failed."""
    parser = argparse.ArgumentParser(description="Run tests with the lowest or the newest versions of dependencies.")
    parser.add_argument("which", nargs="?", choices=RESOLUTIONS, help="one of them; by default both")
    parser.add_argument("tests", nargs="*", default=DEFAULT_TESTS, help="arguments for pytest")
    options = parser.parse_args()
    failed = 0
    with tempfile.TemporaryDirectory(prefix="icefield-uv-") as scratch:
        uv = install_uv(Path(scratch) / "venv")
        for which in [options.which] if options.which else RESOLUTIONS:
            python = build(uv, which)
            print(f"icefield: tests with the {which} versions", file=sys.stderr, flush=True)
            failed += run_tests(python, options.tests) != 0
    return failed


def build(uv: Path, which: str) -> Path:
    """Build or update the environment of a resolution; return its interpreter."""
    place = ROOT / "build" / f"{which}-{sys.implementation.cache_tag}"
    pins = place.with_suffix(".txt")
    place.parent.mkdir(exist_ok=True)
    _uv(uv, "venv", "--allow-existing", f"--python={sys.executable}", str(place))
    python = place / "bin" / "python"
    for_this = (f"--python={python}", f"--resolution={RESOLUTIONS[which]}", "--upgrade", f"--output-file={pins}")
    _uv(uv, "pip", "compile", "--no-annotate", *for_this, *LOCKS["requirements/dev.lock"])
    _uv(uv, "pip", "sync", f"--python={python}", str(pins))
    _uv(uv, "pip", "install", f"--python={python}", "--no-deps", "--editable", ".")
    if which in MORE:
        _uv(uv, "pip", "install", f"--python={python}", *MORE[which])
    return python


def run_tests(python: Path, arguments: Sequence[str]) -> int:
    """Run pytest in an environment, with one case of each test; return its exit code."""
    settings = {"ICEFIELD_EFFORT": "0.1", **os.environ}
    command = [str(python), "-m", "pytest", "-n", "auto", "--dist", "loadgroup", "--no-loadscope-reorder", *arguments]
    return subprocess.run(command, cwd=ROOT, env=settings, check=False).returncode


def _uv(uv: Path, *arguments: str) -> None:
    subprocess.run([str(uv), *arguments, "--quiet"], cwd=ROOT, check=True)


if __name__ == "__main__":
    sys.exit(main())
