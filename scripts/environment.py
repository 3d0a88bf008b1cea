"""Build a virtual environment from a lock file with hashes, once.

    python3 scripts/environment.py .venv requirements/dev.lock --editable
    python3 scripts/environment.py .venv-interop requirements/interop.lock --ignore-requires-python

A stamp in the environment records what it was built from, so a second run ends at once. When the lock changes, the
environment is brought in line with it; when the interpreter or the place changes, or a run was cut short, it is built
again. pip does the work, so the user's own settings of pip (mirror, proxy, certificates, cache) hold.
"""

import argparse
import fcntl
import hashlib
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

ROOT = Path(__file__).resolve().parent.parent
PIP_LOCK = ROOT / "requirements" / "pip.lock"
# Its wheel is never published, and building it takes no compiler. Any other source archive would be a surprise.
BUILT_FROM_SOURCE = "pyspark"
COMPILE_KERNEL = ROOT / "scripts" / "compile_kernel.py"
# What an install of the project itself is made of; its modules are imported from where they are.
PROJECT = (
    ROOT / "pyproject.toml",
    ROOT / "hatch_build.py",
    ROOT / "requirements" / "compiler.lock",
    ROOT / "src" / "icefield" / "codec" / "avro" / "kernel.c",
    COMPILE_KERNEL,
)


@dataclass(frozen=True)
class Wanted:
    """An environment as it should be."""

    place: Path
    lock: Path
    editable: bool
    ignore_requires_python: bool

    def description(self) -> dict[str, str]:
        """Say what the environment is made of; two equal descriptions mean two equal environments."""
        return {
            "interpreter": f"{sys.implementation.cache_tag} {sysconfig.get_platform()}",
            "place": str(self.place),
            "lock": _digest(PIP_LOCK, self.lock, Path(__file__)),
            "project": _digest(*PROJECT) if self.editable else "",
        }


def main() -> None:
    """Build what the command line names, unless it is there already."""
    parser = argparse.ArgumentParser(description="Build a virtual environment from a lock file with hashes, once.")
    parser.add_argument("place", type=ROOT.joinpath, help="directory of the environment, from the root of the project")
    parser.add_argument("lock", type=ROOT.joinpath, help="lock file, from the root of the project")
    parser.add_argument("--editable", action="store_true", help="install the project itself, in place")
    parser.add_argument("--ignore-requires-python", action="store_true", help="take packages made for other Pythons")
    wanted = Wanted(**vars(parser.parse_args()))
    if _read_stamp(wanted.place) == wanted.description():
        return
    with _one_at_a_time(wanted.lock):
        _build(wanted, _read_stamp(wanted.place))


def _build(wanted: Wanted, found: dict[str, str]) -> None:
    """Bring the environment from what its stamp says to what is wanted."""
    target = wanted.description()
    changed = {key for key, value in target.items() if found.get(key) != value}
    if not changed:
        return
    talk = f"{wanted.place.name} from {wanted.lock.relative_to(ROOT)}"
    if changed & {"interpreter", "place"}:
        _say(f"building {talk} (once; it fetches some hundred megabytes)")
        _create(wanted.place)
        changed = set(target)
    else:
        _say(f"updating {talk}")
    # From here until the end the environment is half done, and a run that is cut short must not look finished.
    _stamp(wanted.place).unlink(missing_ok=True)
    if "lock" in changed:
        _install_locks(wanted)
    if wanted.editable:
        _pip(wanted.place, "install", "--no-deps", "--no-index", "--no-build-isolation", "--editable", str(ROOT))
        _compile_kernel(wanted.place)
    _stamp(wanted.place).write_text(json.dumps(target, indent=2) + "\n")


def _compile_kernel(environment: Path) -> None:
    """Compile the Avro kernels if pip did not, for want of a compiler. Without them all works, but planning is slow."""
    command = [str(environment / "bin" / "python"), "-I", str(COMPILE_KERNEL), "--fetch"]
    subprocess.run(command, stdout=subprocess.DEVNULL, check=False)


def _digest(*files: Path) -> str:
    return hashlib.sha256(b"\0".join(file.read_bytes() for file in files)).hexdigest()


def _stamp(environment: Path) -> Path:
    return environment / "built-from.json"


def _read_stamp(environment: Path) -> dict[str, str]:
    """Return the description that the environment was finished with; empty if it was not, or no longer works."""
    if not (environment / "bin" / "python").exists():
        return {}
    try:
        stamp: dict[str, str] = json.loads(_stamp(environment).read_text())
    except (OSError, ValueError):
        return {}
    return stamp


@contextmanager
def _one_at_a_time(lock: Path) -> Iterator[None]:
    """Let a second make wait for the first instead of building into the same directory."""
    with lock.open("rb") as file:
        with suppress(OSError):  # some network file systems have no such locks; then two makes at once are on their own
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _create(environment: Path) -> None:
    ensurepip = importlib.util.find_spec("ensurepip")
    if ensurepip is None or ensurepip.origin is None:  # a directory that is left over has no origin
        _provide_ensurepip()
    if environment.exists():
        shutil.rmtree(environment)
    # In a process of its own: a freshly installed ensurepip is not seen by this one.
    command = [sys.executable, "-m", "venv", str(environment)]
    if subprocess.run(command, check=False).returncode:
        _fail(f"cannot make a virtual environment with {sys.executable} -m venv; its message is above")


def _provide_ensurepip() -> None:
    """Debian and Ubuntu keep ensurepip in a package of its own: as root install it, otherwise say which."""
    package = f"python3.{sys.version_info.minor}-venv"
    apt = shutil.which("apt-get")
    if apt is None:
        _fail(f"{sys.executable} has no ensurepip: install the venv package of this Python, or name another PYTHON")
    if os.geteuid():
        _fail(f"{sys.executable} has no ensurepip: run `apt-get install {package}` as root, or name another PYTHON")
    _say(f"{sys.executable} has no ensurepip: installing {package}")
    quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    install = [apt, "install", "--yes", "--quiet", "--no-install-recommends", package]
    if subprocess.run(install, env=quiet, check=False).returncode:
        subprocess.run([apt, "update", "--quiet"], env=quiet, check=False)
        if subprocess.run(install, env=quiet, check=False).returncode:
            _fail(f"cannot install {package}; the message of apt-get is above")


def _install_locks(wanted: Wanted) -> None:
    """Install what is pinned and hashed, and fetch nothing besides; a lock with a hole in it fails."""
    # Not compiled ahead: most of it is never imported, and that halves the time.
    hashed = ("install", "--require-hashes", "--no-compile", "--only-binary=:all:", "--requirement")
    options = [f"--no-binary={BUILT_FROM_SOURCE}", "--no-build-isolation"]
    if wanted.ignore_requires_python:
        options.append("--ignore-requires-python")
    _pip(wanted.place, *hashed, str(PIP_LOCK))
    _pip(wanted.place, *hashed, str(wanted.lock), *options)
    _remove_strangers(wanted.place, wanted.lock)


def _remove_strangers(environment: Path, lock: Path) -> None:
    """Uninstall what the locks do not name, so that a dependency which was dropped is really gone."""
    known = {"icefield"}
    for file in (PIP_LOCK, lock):
        known |= {_normal(name) for name in re.findall(r"^([\w.-]+)==", file.read_text(), re.MULTILINE)}
    listing = _python(environment, "pip", "list", "--format=json", capture=True)
    strangers = [entry["name"] for entry in json.loads(listing) if _normal(entry["name"]) not in known]
    if strangers:
        _pip(environment, "uninstall", "--yes", *strangers)


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _pip(environment: Path, command: str, *arguments: str) -> None:
    talk = () if sys.stderr.isatty() else ("--quiet",)
    _python(environment, "pip", command, *talk, *arguments)


def _python(environment: Path, module: str, *arguments: str, capture: bool = False) -> str:
    """Run a module of the environment, shut off from PYTHONPATH and the user's own packages."""
    command = [str(environment / "bin" / "python"), "-I", "-m", module, *arguments]
    settings = {**os.environ, "PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_NO_INPUT": "1"}
    done = subprocess.run(
        command, env=settings, stdout=subprocess.PIPE if capture else sys.stderr, text=True, check=False
    )
    if done.returncode:
        _fail(f"cannot build {environment.name}: the message of {module} is above")
    return done.stdout or ""


def _say(text: str) -> None:
    print(f"icefield: {text}", file=sys.stderr, flush=True)


def _fail(text: str) -> NoReturn:
    sys.exit(f"icefield: {text}")


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        _fail("interrupted; the next run starts over, from the cache of pip")
