"""Build a virtual environment from a lock file with hashes, once.

    python3 scripts/environment.py .venv requirements/dev.lock --editable
    python3 scripts/environment.py .venv-interop requirements/interop.lock

A stamp in the environment records what it was built from, so a second run ends at once. When the lock changes, the
environment is brought in line with it; when the interpreter or the place changes, or a run was cut short, it is built
anew. pip does the work, so the user's own settings of pip (mirror, proxy, certificates, cache) hold.
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
from pathlib import Path
from typing import NoReturn

ROOT = Path(__file__).resolve().parent.parent
PIP_LOCK = ROOT / "requirements" / "pip.lock"
# Its wheel is never published, and building it takes no compiler. Any other source archive would be a surprise.
BUILT_FROM_SOURCE = "pyspark"


def main() -> None:
    """Build what the command line names, unless it stands already."""
    parser = argparse.ArgumentParser(description="Build a virtual environment from a lock file with hashes, once.")
    parser.add_argument("environment", help="directory of the environment, from the root of the project")
    parser.add_argument("lock", help="lock file, from the root of the project")
    parser.add_argument("--editable", action="store_true", help="install the project itself, in place")
    arguments = parser.parse_args()
    environment, lock = ROOT / arguments.environment, ROOT / arguments.lock
    wanted = _describe(environment, lock, editable=arguments.editable)
    if _read_stamp(environment) == wanted:
        return
    with _one_at_a_time(lock):
        if _read_stamp(environment) != wanted:
            _build(environment, lock, wanted, editable=arguments.editable)


def _describe(environment: Path, lock: Path, *, editable: bool) -> dict[str, str]:
    """Say what the environment is made of; two equal descriptions mean two equal environments."""
    described = {
        "interpreter": f"{sys.implementation.cache_tag} {sysconfig.get_platform()}",
        "place": str(environment),
        "lock": _digest(PIP_LOCK, lock, Path(__file__)),
    }
    return described | ({"project": _digest(ROOT / "pyproject.toml")} if editable else {})


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


def _build(environment: Path, lock: Path, wanted: dict[str, str], *, editable: bool) -> None:
    found = _read_stamp(environment)
    name = environment.name
    if any(found.get(key) != wanted[key] for key in ("interpreter", "place")):
        _say(f"building {name} from {lock.relative_to(ROOT)} (once; it fetches some hundred megabytes)")
        _create(environment)
        found = {}
    else:
        _say(f"bringing {name} in line with {lock.relative_to(ROOT)}")
    # From here until the end the environment is half done, and a run that is cut short must not look finished.
    _stamp(environment).unlink(missing_ok=True)
    if found.get("lock") != wanted["lock"]:
        _install(environment, PIP_LOCK)
        _install(environment, lock, f"--no-binary={BUILT_FROM_SOURCE}", "--no-build-isolation")
        _remove_strangers(environment, lock)
    if editable:
        _pip(environment, "install", "--no-deps", "--no-index", "--no-build-isolation", "--editable", str(ROOT))
    _stamp(environment).write_text(json.dumps(wanted, indent=2) + "\n")


def _create(environment: Path) -> None:
    ensurepip = importlib.util.find_spec("ensurepip")
    if ensurepip is None or ensurepip.origin is None:  # a directory that is left over has no origin
        _provide_ensurepip()
    if environment.exists():
        shutil.rmtree(environment)
    # In a process of its own: a freshly installed ensurepip is not seen by this one.
    command = [sys.executable, "-m", "venv", str(environment)]
    if subprocess.run(command, check=False).returncode:
        _fail(f"cannot make a virtual environment with {sys.executable} -m venv; its message stands above")


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
            _fail(f"cannot install {package}; the message of apt-get stands above")


def _install(environment: Path, lock: Path, *options: str) -> None:
    """Install what is pinned and hashed, and fetch nothing besides; a lock with a hole in it fails."""
    hashed = ("--require-hashes", "--no-compile", "--only-binary=:all:")
    _pip(environment, "install", *hashed, *options, "--requirement", str(lock))


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
        _fail(f"cannot build {environment.name}: the message of {module} stands above")
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
