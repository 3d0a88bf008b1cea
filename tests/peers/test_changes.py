"""Row-level changes of every kind, in every mode: PyIceberg and DuckDB read the same rows after each of them."""

import pytest
from tests.effort import seeds
from tests.engine.verb_history import Place, VerbHistory
from tests.peers.changed_rows import check_duckdb, check_pyiceberg
from tests.peers.duckdb_reader import DuckDBReader
from tests.peers.gallery import Gallery

HISTORIES = seeds(12, deep=500)


@pytest.mark.parametrize("seed", HISTORIES)
def test_others_read_the_rows_of_the_model_after_every_change(
    seed: int, gallery: Gallery, duckdb_reader: DuckDBReader
) -> None:
    def look(history: VerbHistory) -> None:
        check_pyiceberg(history)
        check_duckdb(history, duckdb_reader)

    VerbHistory(Place(gallery.lake, f"changes.local_{seed}"), seed, {"local": lambda rows: rows}, look).run()
