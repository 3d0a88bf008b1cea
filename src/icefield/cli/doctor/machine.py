"""Checks of this machine: Python, packages, Java, Spark, and the Python of Spark's workers."""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from importlib import metadata
from importlib.util import find_spec
from typing import Any

from icefield.cli.doctor.check import Check, Status, attempt, ok
from icefield.codec.avro.engine import chosen
from icefield.deferred import deferred_imports
from icefield.engine.rows import INSTALL_SPARK
from icefield.errors import Unsupported

with deferred_imports(__name__):
    from icefield.engine.rows import load_spark_engine

OLDEST_PYTHON = (3, 11)
_LOOK_SECONDS = 60
_LOOK = """
import json, sys
from importlib.metadata import version
print(json.dumps([sys.version_info[:2], version("icefield")]))
"""
_REQUIREMENT = re.compile(r"^([\w.-]+)(?:\[[\w,-]+\])?\s*([^;]*?)\s*(?:;(.*))?$")
_MEETS: Mapping[str, Callable[[tuple[int, ...], tuple[int, ...]], bool]] = {
    ">=": lambda found, wanted: found >= wanted,
    "<": lambda found, wanted: found < wanted,
    "==": lambda found, wanted: found == wanted,
}


def check_machine(*, start_spark: bool) -> Iterator[Check]:
    """Check what is installed here; with start_spark, also that a session starts and its workers run."""
    yield _python()
    yield _kernel()
    yield _packages("packages", is_optional=False)
    yield _packages("optional packages", is_optional=True)
    spark = attempt("spark", lambda: _spark(start_spark), INSTALL_SPARK)
    yield spark
    if spark.status is not Status.OK or not _has_spark():
        return
    yield attempt("java", _java, "Install a Java runtime: pip install 'icefield[jre]'")
    yield attempt("workers' python", _workers, "Set PYSPARK_PYTHON to a Python that has icefield")
    if start_spark:
        yield attempt("spark session", _session, "Read Spark's message; JAVA_HOME and SPARK_* variables decide")


def _python() -> Check:
    found = f"{platform.python_version()} ({sys.executable}), {platform.platform()}"
    if sys.version_info[:2] < OLDEST_PYTHON:
        return Check("python", Status.FAILED, found, f"Use Python {'.'.join(map(str, OLDEST_PYTHON))} or newer")
    return ok("python", found)


def _kernel() -> Check:
    found = chosen().description
    if chosen().is_compiled:
        return ok("avro kernel", found)
    return Check(
        "avro kernel",
        Status.WARNING,
        f"{found}: planning is slow",
        "Install a wheel for this platform, or a C compiler",
    )


def _packages(name: str, *, is_optional: bool) -> Check:
    """Compare the installed packages with what the project asks for."""
    found, wrong = [], []
    for package, wanted in sorted(_wanted_packages(is_optional=is_optional).items()):
        version = _version_of(package)
        found.append(f"{package} {version or 'not installed'}")
        if version is not None and not meets(version, wanted):
            wrong.append(f"{package} {version} is not {wanted}")
    if wrong:
        install = " ".join(f"'{text.split()[0]}{text.rpartition(' ')[2]}'" for text in wrong)
        return Check(name, Status.WARNING, "; ".join(wrong), f"Run pip install {install}")
    return ok(name, ", ".join(found))


def _wanted_packages(*, is_optional: bool) -> dict[str, str]:
    """Return each package that the project asks for, in an extra or without one, and its versions."""
    wanted: dict[str, str] = {}
    for text in metadata.requires("icefield") or []:
        parts = _REQUIREMENT.match(text)
        if parts and parts[1] != "icefield" and ("extra" in (parts[3] or "")) is is_optional:
            wanted[parts[1]] = parts[2]
    return wanted


def meets(version: str, wanted: str) -> bool:
    """Return whether a version meets specifiers such as `>=2.2,<3`, by its numbers; what is not understood is met."""
    found = _numbers(version)
    for specifier in filter(None, wanted.split(",")):
        sign = re.match(r"\s*(>=|==|<)\s*([\d.]+)\s*$", specifier)
        if sign and not _MEETS[sign[1]](found, _numbers(sign[2])):
            return False
    return True


def _numbers(version: str) -> tuple[int, ...]:
    numbers = [int(number) for number in re.findall(r"\d+", re.match(r"[\d.]*", version)[0])]  # type: ignore[index]
    while numbers and numbers[-1] == 0:
        numbers.pop()
    return tuple(numbers)


def _spark(is_needed: bool) -> Check:  # noqa: FBT001
    if not _has_spark():
        status = Status.FAILED if is_needed else Status.OK
        return Check("spark", status, "pyspark is not installed; what needs Spark is not available", INSTALL_SPARK)
    load_spark_engine()
    return ok("spark", f"pyspark {_version_of('pyspark') or 'of this platform'}")


def _java() -> Check:
    java: Any = load_spark_engine().java_home()
    found = f"Java {java.version} from {java.source}"
    if java.message is not None:
        return Check("java", Status.WARNING, f"{found}; {java.message}", "Set JAVA_HOME to a JDK 17 or 21, or unset it")
    return ok("java", found)


def _workers() -> Check:
    """Look at the Python that a session would give its workers, without a session."""
    name = "workers' python"
    named = os.environ.get("PYSPARK_PYTHON")
    if named is None or shutil.which(named) == sys.executable:
        return _python3_beside(name)
    found = _look_at(named)
    ours = [list(sys.version_info[:2]), metadata.version("icefield")]
    if found != ours:
        said = f"has {_described(found)}, this process {_described(ours)}" if found else "has no icefield"
        return Check(name, Status.FAILED, f"PYSPARK_PYTHON={named} {said}", f"Set PYSPARK_PYTHON={sys.executable}")
    return ok(name, f"{named} (PYSPARK_PYTHON)")


def _python3_beside(name: str) -> Check:
    """Look at `python3` on PATH, which sessions that are started elsewhere give their workers."""
    beside = shutil.which("python3")
    if beside is None or os.path.realpath(beside) == os.path.realpath(sys.executable):
        return ok(name, f"{sys.executable}, that of this process")
    found = _look_at(beside)
    if found == [list(sys.version_info[:2]), metadata.version("icefield")]:
        return ok(name, f"{sys.executable}, that of this process")
    return ok(
        name,
        f"{sys.executable}, that of this process; {beside}, which other sessions take, "
        + (f"has {_described(found)}" if found else "has no icefield"),
        f"For sessions that Icefield does not start, set PYSPARK_PYTHON={sys.executable}",
    )


def _look_at(python: str) -> list[Any] | None:
    """Return the versions of a Python and of its icefield; None if it has none."""
    try:
        done = subprocess.run([python, "-c", _LOOK], capture_output=True, text=True, timeout=_LOOK_SECONDS, check=False)
        found: list[Any] = json.loads(done.stdout)
    except OSError as error:
        raise Unsupported(f"the Python {python} does not start: {error.strerror}") from error
    except (ValueError, subprocess.SubprocessError):
        return None
    return found


def _described(found: list[Any]) -> str:
    return f"icefield {found[1]} on Python {'.'.join(map(str, found[0]))}"


def _session() -> Check:
    return ok("spark session", load_spark_engine().check_session())


def _has_spark() -> bool:
    """Return whether there is a pyspark, installed by pip or by a platform."""
    try:
        return find_spec("pyspark") is not None
    except ImportError:
        return False


def _version_of(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None
