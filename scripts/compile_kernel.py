"""Compile the Avro kernels of `kernel.c` to a shared library, if it is not there already; print where it is.

    python3 scripts/compile_kernel.py            beside kernel.c, with $CC, cc, gcc, clang or an installed ziglang
    python3 scripts/compile_kernel.py --fetch    if none of them can do it, with the zig of requirements/compiler.lock

On Linux the library is linked with nothing, so that neither the headers nor the version of a C library matter. zig is
fetched into a directory that is removed afterwards.
"""

import argparse
import importlib.util
import os
import runpy
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "icefield" / "codec" / "avro" / "kernel.c"
COMPILER_LOCK = ROOT / "requirements" / "compiler.lock"
# The system that a wheel is built for, where that is not this one (scripts/build_wheels.py).
SYSTEM_VARIABLE = "ICEFIELD_BUILD_SYSTEM"
OPTIONS = ("-std=c11", "-O3", "-fPIC", "-shared", "-fvisibility=hidden")
# Elsewhere, linkers want the C library in every library.
OPTIONS_ON_LINUX = ("-ffreestanding", "-nostdlib")

Command = Sequence[str]


class NotCompiled(Exception):
    """There is no compiler, or it failed."""


def main() -> None:
    """Compile what the command line names."""
    parser = argparse.ArgumentParser(description="Compile the Avro kernels to a shared library.")
    parser.add_argument("--into", type=Path, default=SOURCE.parent, help="directory of the library")
    parser.add_argument("--fetch", action="store_true", help="fetch zig if there is no compiler")
    options = parser.parse_args()
    try:
        library = find_or_compile(options.into, fetch=options.fetch)
    except NotCompiled as error:
        sys.exit(f"icefield: the Avro kernels are not compiled, and run as plain Python: {error}")
    print(library)


def find_or_compile(into: Path = SOURCE.parent, *, fetch: bool = False) -> Path:
    """Return the library if it is there, else compile it with the first compiler that can."""
    if library_path(into).exists():
        return library_path(into)
    failures = []
    for compiler in compilers():
        try:
            return compile_kernel(compiler, into)
        except NotCompiled as error:
            failures.append(str(error))
    if fetch:
        print("icefield: no C compiler here: fetching zig for the Avro kernels", file=sys.stderr, flush=True)
        with zig() as compiler:
            return compile_kernel(compiler, into)
    raise NotCompiled("\n".join(failures) or "there is no cc, gcc or clang, and no ziglang; $CC can name a compiler")


def compile_kernel(compiler: Command, into: Path, options: Command = ()) -> Path:
    """Compile with one compiler; raise NotCompiled with its message if it fails."""
    library = library_path(into)
    try:
        into.mkdir(parents=True, exist_ok=True)
        # Under another name first: a process that looks for the library finds all of it or nothing.
        with tempfile.TemporaryDirectory(dir=into, prefix=".kernel-") as scratch:
            made = Path(scratch) / library.name
            _run_compiler([*compiler, *_options(), *options, str(SOURCE), "-o", str(made)], scratch)
            made.replace(library)
        for old in set(into.glob(f"kernel-*-{_system()}.so")) - {library}:
            old.unlink(missing_ok=True)
    except OSError as error:
        raise NotCompiled(str(error)) from error
    return library


def compilers() -> list[Command]:
    """Return the compilers to try: the user's own choice, or else whatever is installed."""
    if chosen := shlex.split(os.environ.get("CC", "")):
        return [chosen]
    found: list[Command] = [[path] for name in ("cc", "gcc", "clang") if (path := shutil.which(name))]
    if importlib.util.find_spec("ziglang"):
        found.append([sys.executable, "-m", "ziglang", "cc"])
    return found


def library_path(into: Path) -> Path:
    """Return where the library of the present source is, or will be."""
    return into / str(_naming()["library_name"](SOURCE.read_bytes(), _system()))


@contextmanager
def zig() -> Iterator[Command]:
    """Provide the zig of the lock as a compiler, for a while."""
    with tempfile.TemporaryDirectory(prefix="icefield-zig-") as place:
        hashed = ("--require-hashes", "--only-binary=:all:", "--requirement", str(COMPILER_LOCK))
        options = ("--quiet", "--disable-pip-version-check", "--no-compile", "--target", place)
        command = [sys.executable, "-I", "-m", "pip", "install", *options, *hashed]
        if subprocess.run(command, stdout=sys.stderr, check=False).returncode:
            raise NotCompiled("cannot fetch zig: the message of pip is above")
        yield [str(Path(place) / "ziglang" / "zig"), "cc"]


def _run_compiler(command: Command, scratch: str) -> None:
    caches = {name: os.environ.get(name, scratch) for name in ("ZIG_GLOBAL_CACHE_DIR", "ZIG_LOCAL_CACHE_DIR")}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, **caches})
    if done.returncode:
        raise NotCompiled(f"{shlex.join(command)} failed:\n{done.stderr.strip()}")


def _options() -> Command:
    return (*OPTIONS, *OPTIONS_ON_LINUX) if _system().startswith("linux") else OPTIONS


def _system() -> str:
    return os.environ.get(SYSTEM_VARIABLE) or str(_naming()["this_system"]())


def _naming() -> dict[str, Any]:
    """Run the module that looks for the library. It imports nothing of the package, which may not be installed yet."""
    return runpy.run_path(str(SOURCE.with_name("library.py")))


if __name__ == "__main__":
    main()
