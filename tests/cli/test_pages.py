"""The pages for users do what they show, and nothing breaks if they are followed again on the lake that they left."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.test_readme import blocks

import icefield as package
from icefield.errors import IcefieldError, IcefieldWarning

ROOT = Path(__file__).parent.parent.parent
PAGES = (
    "from-pyiceberg.md",
    "from-delta.md",
    "cookbook.md",
    "deployment.md",
    "object-stores.md",
    "tuning.md",
    "backup.md",
    "security.md",
    "troubleshooting.md",
)


def test_the_page_of_the_command_line_does_what_it_shows_twice(check_page: Callable[..., None]) -> None:
    check_page("command-line.md")


@pytest.mark.slow
@pytest.mark.every_case
@pytest.mark.parametrize("page", PAGES)
def test_a_page_does_what_it_shows_twice(page: str, check_page: Callable[..., None]) -> None:
    check_page(page)


@pytest.mark.slow
@pytest.mark.spark
def test_the_page_for_users_of_spark_does_what_it_shows_twice(check_page: Callable[..., None], spark: object) -> None:
    check_page("from-spark.md")


def test_every_page_with_commands_or_prompts_is_run() -> None:
    """A page that a reader can follow is one that a test follows."""
    tests = "".join(path.read_text() for path in (ROOT / "tests").rglob("test_*.py"))
    for page in sorted((ROOT / "docs").glob("*.md")):
        if any(kind == "console" or ">>> " in text for kind, text in blocks(page)):
            assert f'"{page.name}"' in tests, page.name


def test_every_error_has_its_place_in_troubleshooting() -> None:
    page = (ROOT / "docs" / "troubleshooting.md").read_text()
    public = (getattr(package, name) for name in package.__all__)
    kinds = (IcefieldError, IcefieldWarning)
    errors = {each.__name__ for each in public if isinstance(each, type) and issubclass(each, kinds)}
    assert set(re.findall(r"^### (\w+)$", page, re.MULTILINE)) == errors
