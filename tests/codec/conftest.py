"""Run tests under both engines: the kernels in plain Python and in C."""

import pytest
from tests.kernels import ENGINES

from icefield.codec.avro import engine as avro_engine


@pytest.fixture(params=sorted(ENGINES))
def engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Force one engine for a whole test."""
    engine = ENGINES[request.param]()
    monkeypatch.setattr(avro_engine, "current_engine", lambda: engine)
    return str(request.param)
