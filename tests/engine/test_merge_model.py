"""Random row-level changes on the local engine do what a model of rows says, and faults in the engine are found."""

from collections.abc import Callable, Iterable

import numpy as np
import pytest
from tests.effort import seeds
from tests.engine.merge_model import check_history

import icefield
from icefield.engine.apply_clauses import ClauseResults
from icefield.engine.file_ends import FileEnds
from icefield.engine.local_merge import LocalMerge
from icefield.lake import Lake

HISTORIES = seeds(25, deep=2_000)


@pytest.mark.parametrize("seed", HISTORIES)
def test_random_changes_do_what_the_model_says(memory_lake: Lake, seed: int) -> None:
    check_history(memory_lake, seed, "local")


@pytest.mark.parametrize("seed", seeds(8, deep=500))
def test_the_size_of_batches_does_not_matter(memory_lake: Lake, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    monkeypatch.setattr("icefield.parquet.read.open_file.BATCH_ROWS", 2)
    monkeypatch.setattr("icefield.engine.local_merge.PENDING_BYTES", 100)
    monkeypatch.setattr("icefield.engine.apply_clauses.MOST_NEW_ROWS", 1)
    monkeypatch.setattr("icefield.engine.key_join.MOST_PAIRS", 2)
    check_history(memory_lake, 1_000 + seed, "local")


def _forget_old_deletes(patch: pytest.MonkeyPatch) -> None:
    patch.setattr("icefield.engine.file_ends.np.union1d", lambda before, touched: touched)


def _lose_new_rows(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(LocalMerge, "_insert", lambda merge: None)


def _forget_row_ids(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ClauseResults, "_row_ids", lambda *arguments: None)


def _leave_old_rows(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(FileEnds, "add", lambda ends, task, touched: None)


def _match_nulls(patch: pytest.MonkeyPatch) -> None:
    patch.setattr("icefield.engine.key_join.has_no_null", lambda columns, rows: np.ones(rows, np.bool_))


def _distinguish_zeros(patch: pytest.MonkeyPatch) -> None:
    patch.setattr("icefield.engine.key_join.equal_form", lambda column: column)


def _ignore_double_matches(patch: pytest.MonkeyPatch) -> None:
    patch.setattr("icefield.engine.change.Merge.refuses_double_matches", False)


def _miss_keys(patch: pytest.MonkeyPatch) -> None:
    patch.setattr("icefield.types.key_filter.KeyFilter.may_match", lambda known, columns, rows: np.arange(rows) % 5 > 0)


# Each with the seed of a history that shows it; later ones are tried too, so that the histories may change.
FAULTS = [
    (_distinguish_zeros, 32),
    (_forget_old_deletes, 5),
    (_forget_row_ids, 0),
    (_ignore_double_matches, 7),
    (_leave_old_rows, 0),
    (_lose_new_rows, 0),
    (_match_nulls, 0),
    (_miss_keys, 0),
]
MOST_TRIES = 50


@pytest.mark.parametrize(("fault", "seed"), FAULTS)
def test_the_model_finds_a_fault(
    monkeypatch: pytest.MonkeyPatch, fault: Callable[[pytest.MonkeyPatch], None], seed: int
) -> None:
    fault(monkeypatch)
    with pytest.raises(AssertionError):
        _check_histories(range(seed, seed + MOST_TRIES))


def _check_histories(chosen: Iterable[int]) -> None:
    for seed in chosen:
        with icefield.connect("memory:") as lake:
            check_history(lake, seed, "local")
