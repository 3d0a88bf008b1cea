"""Build what a release consists of: a wheel for each platform, one of Python only, and the source archive.

    .venv/bin/python -m scripts.build_wheels             all into dist/
    .venv/bin/python -m scripts.build_wheels linux       those whose system begins so

One machine builds all of them: zig compiles for other systems, and the kernels need no C library. A wheel serves every
Python 3 of its platform.
"""

import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hatch_build import PLATFORM_VARIABLE
from scripts.compile_kernel import ROOT, SYSTEM_VARIABLE, NotCompiled, zig

DIST = ROOT / "dist"


@dataclass(frozen=True)
class Target:
    """A system as `avro.library` names it, as zig does, and the platforms of its wheel."""

    system: str
    zig: str
    platforms: str


# On Linux the library is linked with nothing, so that one serves both C libraries.
TARGETS = (
    Target("linux-x86_64", "x86_64-linux-gnu.2.17", "manylinux_2_17_x86_64.manylinux2014_x86_64.musllinux_1_1_x86_64"),
    Target(
        "linux-aarch64", "aarch64-linux-gnu.2.17", "manylinux_2_17_aarch64.manylinux2014_aarch64.musllinux_1_1_aarch64"
    ),
    Target("darwin-x86_64", "x86_64-macos.10.13", "macosx_10_13_x86_64"),
    Target("darwin-arm64", "aarch64-macos.11.0", "macosx_11_0_arm64"),
    Target("win32-amd64", "x86_64-windows-gnu", "win_amd64"),
)


def main(prefix: str = "") -> int:
    """Build the wheels of the systems that begin so; return how many failed. The one of Python only is always built."""
    failed = []
    with zig() as compiler, tempfile.TemporaryDirectory(prefix="icefield-zig-cache-") as cache:
        for target in TARGETS:
            if target.system.startswith(prefix):
                try:
                    _say(f"{target.system}: {build_wheel(target, compiler, DIST, Path(cache))}")
                except NotCompiled as error:
                    failed.append(target.system)
                    _say(f"{target.system}: not built: {error}")
    _say(f"python only: {_hatchling(DIST, 'wheel', {'HATCH_BUILD_NO_HOOKS': 'true'})}")
    _say(f"source: {_hatchling(DIST, 'sdist', {})}")
    if failed:
        _say(f"not built: {', '.join(failed)}")
    return len(failed)


def build_wheel(target: Target, compiler: Sequence[str], into: Path, cache: Path) -> str:
    """Build the wheel of a platform; return its name."""
    settings = {
        "CC": shlex.join((*compiler, "-target", target.zig, "-s")),
        SYSTEM_VARIABLE: target.system,
        PLATFORM_VARIABLE: target.platforms,
        "ZIG_GLOBAL_CACHE_DIR": str(cache),
        "ZIG_LOCAL_CACHE_DIR": str(cache),
    }
    made = _hatchling(into, "wheel", settings)
    if target.platforms not in made:
        raise NotCompiled("the message of the compiler is above")
    return made


def _hatchling(into: Path, kind: str, settings: dict[str, str]) -> str:
    """Build one file; return its name."""
    with tempfile.TemporaryDirectory(prefix="icefield-build-") as scratch:
        command = [sys.executable, "-m", "hatchling", "build", "--target", kind, "--directory", scratch]
        subprocess.run(command, cwd=ROOT, env={**os.environ, **settings}, check=True)
        (made,) = Path(scratch).iterdir()
        into.mkdir(parents=True, exist_ok=True)
        shutil.move(made, into / made.name)
    return made.name


def _say(text: str) -> None:
    print(text, flush=True)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
