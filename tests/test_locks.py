"""The lock files hold what pyproject.toml asks for, whole, hashed, and without a word about where it comes from."""

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

pytestmark = pytest.mark.every_case

ROOT = Path(__file__).parent.parent
LOCKS = sorted((ROOT / "requirements").glob("*.lock"))
PIN = re.compile(r"^([\w.-]+)==(\S+)(?: ; .+)? \\$")
HASH = re.compile(r"^    --hash=sha256:[0-9a-f]{64}( \\)?$")


def read_pins(lock: Path) -> dict[str, set[str]]:
    """Return the versions of each package; there is more than one where platforms or interpreters differ."""
    pins: dict[str, set[str]] = {}
    for line in lock.read_text().splitlines():
        if found := PIN.match(line):
            pins.setdefault(canonicalize_name(found[1]), set()).add(found[2])
    return pins


def requirements_of_the_project() -> list[Requirement]:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    project = settings["project"]
    extras = [text for name in ("jre", "spark") for text in project["optional-dependencies"][name]]
    asked = [*project["dependencies"], *extras, *settings["dependency-groups"]["dev"]]
    return [Requirement(text) for text in [*asked, *settings["build-system"]["requires"]]]


def test_every_environment_has_a_lock() -> None:
    named = ["compiler.lock", "dev.lock", "interop.lock", "locker.lock", "pip.lock", "site.lock"]
    assert [lock.name for lock in LOCKS] == named


@pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: lock.name)
def test_a_lock_is_pins_and_hashes_and_nothing_else(lock: Path) -> None:
    lines = [line for line in lock.read_text().splitlines() if not line.startswith("#")]
    assert [line for line in lines if not PIN.match(line) and not HASH.match(line)] == []
    assert all(HASH.match(after) for line, after in zip(lines, [*lines[1:], ""], strict=True) if PIN.match(line))
    assert "://" not in lock.read_text()


@pytest.mark.parametrize("requirement", requirements_of_the_project(), ids=lambda requirement: requirement.name)
def test_the_lock_meets_what_the_project_asks_for(requirement: Requirement) -> None:
    versions = read_pins(ROOT / "requirements" / "dev.lock").get(canonicalize_name(requirement.name), set())
    assert versions, "run make lock"
    assert all(requirement.specifier.contains(version) for version in versions), "run make lock"


def test_the_site_has_the_versions_of_the_project_that_it_imports() -> None:
    site, project = (read_pins(ROOT / "requirements" / f"{name}.lock") for name in ("site", "dev"))
    shared = site.keys() & project.keys()
    assert shared
    assert {name: site[name] for name in shared} == {name: project[name] for name in shared}, "run make lock"
