"""The crash tests find what they look for: with a mistake planted, some crash leaves a lake that is not whole."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.crash.scene import Scene, Zygote
from tests.crash.steps import Hit, some

from icefield.errors import IcefieldError


@pytest.fixture
def make_scene(zygote: Zygote, tmp_path: Path) -> Iterator[Callable[[str], Scene]]:
    made: list[Scene] = []

    def make(operation: str) -> Scene:
        made.append(Scene(zygote, operation, tmp_path, None))
        return made[-1]

    yield make
    for scene in made:
        scene.close()


@pytest.mark.parametrize(
    ("operation", "planted"),
    [
        ("append", "pointer before metadata"),
        ("append", "pointer before manifests"),
        ("transaction", "tables one by one"),
        ("lake-wide publish", "tables one by one"),
    ],
)
def test_a_kill_finds(operation: str, planted: str, make_scene: Callable[[str], Scene]) -> None:
    scene = make_scene(operation)
    steps = scene.crash(Hit.NOTHING, -1, planted).steps
    # What goes wrong goes wrong late, so that the search begins at the end of what every run hits.
    late = reversed(some(steps, [at for at, (_, effect) in enumerate(steps) if effect]))
    assert any(finds(lambda at=at: scene.kill(at, planted)) for at in late)  # type: ignore[misc]


def test_a_lost_answer_finds_that_it_is_taken_for_a_failure(make_scene: Callable[[str], Scene]) -> None:
    scene = make_scene("append")
    commit = max(at for at, (label, _) in enumerate(scene.steps) if label == "COMMIT")
    scene.fail(commit, Hit.FAIL_AFTER)
    assert finds(lambda: scene.fail(commit, Hit.FAIL_AFTER, "unknown taken for failed"))


def finds(check: Callable[[], object]) -> bool:
    """Return whether a check goes red: by itself, or because the lake cannot be read at all."""
    try:
        check()
    except (AssertionError, IcefieldError, FileNotFoundError):
        return True
    return False
