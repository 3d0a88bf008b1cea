"""Fixtures of the tests that hold for both engines."""

import pytest

from icefield.engine.choose import EngineName


@pytest.fixture(params=["local", pytest.param("spark", marks=pytest.mark.spark)])
def engine(request: pytest.FixtureRequest) -> EngineName:
    """The engine that runs a verb."""
    if request.param == "spark":
        request.getfixturevalue("spark")
    name: EngineName = request.param
    return name
