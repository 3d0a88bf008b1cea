"""Run tests under both engines: the kernels as plain Python and as machine code."""

import pytest

from icefield.codec.avro import engine as avro_engine


@pytest.fixture(params=["plain", "compiled"])
def engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Force one engine for a whole test."""
    budget = 1 << 60 if request.param == "plain" else 0
    monkeypatch.setattr(avro_engine, "BUDGET", avro_engine.Budget(budget))
    return str(request.param)
