"""Run tests under both engines: the kernels as plain Python and as machine code."""

from functools import cache

import pytest

from icefield.codec.avro import engine as avro_engine


# To compile takes many seconds in a fresh clone, so that `make quick` does not.
@pytest.fixture(params=["plain", pytest.param("compiled", marks=pytest.mark.slow)])
def engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Force one engine for a whole test."""
    budget = 1 << 60 if request.param == "plain" else 0
    monkeypatch.setattr(avro_engine, "BUDGET", avro_engine.Budget(budget))
    if request.param == "plain":
        # As in a process that has not loaded the compiled one: from then on it is used whatever the budget.
        monkeypatch.setattr(avro_engine, "compiled_engine", cache(avro_engine.CompiledEngine))
    return str(request.param)
