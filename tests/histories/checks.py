"""What must hold of a table after every step of its history."""

from typing import Any

import pyarrow as pa
from tests.histories.filters import draw_filter, split
from tests.histories.history import History
from tests.histories.model import KEY_ID
from tests.peers.normal import Row, normal_rows

from icefield.model.metadata import ROW_LINEAGE_VERSION
from icefield.table.table import Table
from icefield.types.arrow import arrow_schema

LINEAGE = ("_row_id", "_last_updated_sequence_number")


class Checks:
    """Compares a table with its model; remembers row ids, which must never change."""

    def __init__(self, history: History) -> None:
        self._history = history
        self._lineage: dict[int, tuple[int, int]] = {}

    def check(self) -> None:
        """Check everything."""
        table, model = self._history.table, self._history.model
        assert table.metadata.format_version == model.format_version
        assert table.schema.fields == model.fields
        assert read_rows(table) == model.normal_rows()
        assert table.count() == len(model.rows)
        self._check_filter()
        self._check_past()
        if model.format_version >= ROW_LINEAGE_VERSION:
            self._check_lineage()

    def _check_filter(self) -> None:
        history = self._history
        where = draw_filter(history.random, history.model)
        matching, _ = split(history.model, where)
        assert read_rows(history.table, where=where) == history.model.normal_rows(matching)
        assert history.table.scan(where=where).count() == len(matching)

    def _check_past(self) -> None:
        if self._history.past and self._history.random.random() < 0.4:
            past = self._history.random.choice(self._history.past)
            scan = self._history.table.scan(as_of=past.snapshot_id)
            assert scan.schema.fields == past.fields
            assert read_rows(self._history.table, as_of=past.snapshot_id) == past.rows

    def _check_lineage(self) -> None:
        table = self._history.table
        snapshot = table.metadata.current_snapshot
        key = table.schema.name_of(KEY_ID)
        rows = table.scan(select=[key, *LINEAGE]).to_arrow().read_all().to_pylist()
        for reborn in self._history.reborn:
            self._lineage.pop(reborn, None)
        self._history.reborn.clear()
        has_ids = snapshot is not None and snapshot.first_row_id is not None
        for row in rows:
            lineage = (row["_row_id"], row["_last_updated_sequence_number"])
            assert (None in lineage) is not has_ids
            if has_ids:
                known = self._lineage.get(row[key], lineage)
                if row[key] in self._history.replaced:
                    # It stays the same row, and was updated. (spec: Row lineage assignment)
                    assert lineage[0] == known[0], "a row's id changed"
                    assert lineage[1] >= known[1], "a row became older"
                else:
                    assert lineage == known, "a row's lineage changed"
                self._lineage[row[key]] = lineage
        self._history.replaced.clear()
        ids = [row_id for row_id, _ in self._lineage.values()]
        assert len(set(ids)) == len(ids), "a row id was given twice"
        assert all(row_id < table.metadata.next_row_id for row_id in ids)


def read_rows(table: Table, **options: Any) -> list[Row]:
    """Read a table by icefield itself."""
    scan = table.scan(**options)
    rows: pa.Table = scan.to_arrow().read_all()
    return normal_rows(rows, arrow_schema(scan.schema))
