"""A process that dies or fails at any step of an operation leaves the tables as before or as after, and whole.

The normal run hits some steps of each operation, and those around its commit; `make deep` hits all of them.
"""

from collections.abc import Iterable

import pytest
from tests.crash.scene import Scene
from tests.crash.steps import Hit, some

pytestmark = pytest.mark.slow


def test_killed_at_any_step_the_tables_are_as_before_or_as_after(scene: Scene) -> None:
    done = [scene.kill(at) for at in some(scene.steps, [at for at, (_, effect) in enumerate(scene.steps) if effect])]
    turn = done.index(True)
    assert done == [False] * turn + [True] * (len(done) - turn), "one step makes it so, and there is no way back"
    assert turn > 0


def test_failed_at_any_step_the_error_says_what_became_of_it(scene: Scene) -> None:
    places = [at for at, (label, _) in enumerate(scene.steps[:-1]) if not is_excepted(scene, label)]
    fail_at(scene, some(scene.steps, places))


def is_excepted(scene: Scene, label: str) -> bool:
    # Files are the same to both catalogs.
    return scene.is_on_server and not is_statement(label)


def is_statement(label: str) -> bool:
    return label.split()[0].isupper() or label == "open PostgreSQL"


def fail_at(scene: Scene, places: Iterable[int]) -> None:
    for at in places:
        scene.fail(at, Hit.FAIL_BEFORE)
        if scene.steps[at][1]:  # a call without an effect can fail in one way only
            scene.fail(at, Hit.FAIL_AFTER)
