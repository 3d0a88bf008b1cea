"""The build of the Avro kernels: one library for each version of kernel.c, and a wheel with or without it."""

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from scripts import build_wheels, compile_kernel
from scripts.compile_kernel import NotCompiled, find_or_compile, library_path
from scripts.environment import PROJECT

from icefield.codec.avro import library

needs_compiler = pytest.mark.skipif(not compile_kernel.compilers(), reason="there is no C compiler on this machine")

ROOT = Path(__file__).parent.parent
SCRIPT = ROOT / "scripts" / "compile_kernel.py"
NO_FOLDER = "/nowhere"


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of kernel.c that the build takes for its own."""
    folder = tmp_path / "a package"
    folder.mkdir()
    for name in ("kernel.c", "library.py"):
        shutil.copy(library.FOLDER / name, folder)
    monkeypatch.setattr(compile_kernel, "SOURCE", folder / "kernel.c")
    return folder / "kernel.c"


def compiler_in(folder: Path, name: str, script: str) -> Path:
    """Write a program that is called like a compiler."""
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


@needs_compiler
def test_a_library_is_compiled_once(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = find_or_compile(source.parent)
    assert library.load_library(source.parent)._name == str(made)
    monkeypatch.setenv("CC", "false")
    assert find_or_compile(source.parent) == made
    assert sorted(path.name for path in source.parent.iterdir()) == [made.name, "kernel.c", "library.py"]


@needs_compiler
def test_another_source_makes_another_library_and_the_old_one_goes(source: Path) -> None:
    old = find_or_compile(source.parent)
    source.write_text(source.read_text() + "/* changed */\n")
    foreign = source.parent / library.library_name(b"", "plan9-mips")
    foreign.touch()
    new = find_or_compile(source.parent)
    assert new != old
    assert {path.name for path in source.parent.glob("*.so")} == {new.name, foreign.name}


def test_a_compiler_that_fails_is_followed_by_the_next(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if real is None:
        pytest.skip("there is no compiler on the path")
    compiler_in(tmp_path, "cc", "echo no headers >&2; exit 1")
    compiler_in(tmp_path, "gcc", f'exec "{real}" "$@"')
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    assert find_or_compile(source.parent).exists()


def test_the_compiler_of_the_user_is_the_only_one(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = compiler_in(tmp_path, "my compiler", 'echo "$1" is not known >&2; exit 1')
    monkeypatch.setenv("CC", f"'{mine}' --flag")
    with pytest.raises(NotCompiled, match="--flag is not known"):
        find_or_compile(source.parent)
    assert list(source.parent.glob("*.so")) == []


@pytest.mark.parametrize("compiler", ["/nowhere/cc", "false"])
def test_a_compiler_that_is_not_there_or_fails_is_named(
    source: Path, monkeypatch: pytest.MonkeyPatch, compiler: str
) -> None:
    monkeypatch.setenv("CC", compiler)
    with pytest.raises(NotCompiled, match=compiler):
        find_or_compile(source.parent)


@needs_compiler
def test_a_directory_that_cannot_be_written_to_is_named(source: Path) -> None:
    with pytest.raises(NotCompiled, match="kernel.c"):
        find_or_compile(source / "below a file")


def test_without_a_compiler_the_script_says_so(tmp_path: Path) -> None:
    variables = {**os.environ, "PATH": NO_FOLDER, "CC": ""}
    command = [sys.executable, str(SCRIPT), "--into", str(tmp_path)]
    done = subprocess.run(command, env=variables, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr == (
        "icefield: the Avro kernels are not compiled, and run as plain Python: "
        "there is no cc, gcc or clang, and no ziglang; $CC can name a compiler\n"
    )


def test_the_build_and_the_package_agree_on_names() -> None:
    assert library_path(library.FOLDER).name == library.library_name(
        (library.FOLDER / "kernel.c").read_bytes(), library.this_system()
    )


def test_an_environment_is_updated_when_the_kernels_or_their_build_change() -> None:
    assert {compile_kernel.SOURCE, compile_kernel.COMPILER_LOCK, SCRIPT, ROOT / "hatch_build.py"} < set(PROJECT)
    assert all(path.exists() for path in PROJECT)


def test_every_platform_has_its_own_wheel() -> None:
    for names in zip(*((t.system, t.zig, t.platforms) for t in build_wheels.TARGETS), strict=True):
        assert len(set(names)) == len(build_wheels.TARGETS)


def build(into: Path, **settings: str) -> "subprocess.CompletedProcess[str]":
    """Build the wheel as pip does."""
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(into)]
    variables = {**os.environ, **settings}
    return subprocess.run(command, cwd=ROOT, env=variables, capture_output=True, text=True, check=True)


def unpacked(wheel: Path, into: Path) -> str:
    """Install a wheel, as far as it is its files; return what its command line says about itself."""
    zipfile.ZipFile(wheel).extractall(into)
    program = "from icefield.cli.main import run; run(['--version'])"
    variables = {**os.environ, "PYTHONPATH": str(into)}
    done = subprocess.run(
        [sys.executable, "-c", program], env=variables, cwd=into, capture_output=True, text=True, check=True
    )
    return done.stdout


@pytest.mark.slow
@needs_compiler
def test_a_wheel_has_the_library_and_the_tag_of_its_platform(tmp_path: Path) -> None:
    build(tmp_path, ICEFIELD_BUILD_PLATFORM="")
    (wheel,) = tmp_path.glob("*.whl")
    python, abi, platform = wheel.stem.split("-")[-3:]
    assert (python, abi) == ("py3", "none")
    assert platform != "any"
    names = zipfile.ZipFile(wheel).namelist()
    assert [name for name in names if name.endswith(".so")] == [f"icefield/codec/avro/{library_path(Path()).name}"]
    assert "icefield/codec/avro/kernel.c" in names
    assert unpacked(wheel, tmp_path / "site packages").endswith("Avro kernel: C\n")


@pytest.mark.slow
def test_without_a_compiler_a_wheel_is_of_python_only(tmp_path: Path) -> None:
    done = build(tmp_path, CC="false")
    assert "icefield: the Avro kernels are not compiled, and run as plain Python: false" in done.stderr
    (wheel,) = tmp_path.glob("*.whl")
    assert wheel.name.endswith("-py3-none-any.whl")
    assert not [name for name in zipfile.ZipFile(wheel).namelist() if name.endswith(".so")]
    assert "Avro kernel: plain Python (there is no kernel-" in unpacked(wheel, tmp_path / "site packages")
