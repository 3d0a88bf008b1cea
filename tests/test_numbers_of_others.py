"""Numbers that others wrote into metadata: as large as they like, or no numbers at all."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import icefield
from icefield.arguments import whole_number
from icefield.commit.validate.key_history import BATCH_KEY, PREVIOUS_KEY, STREAM_KEY, Memory
from icefield.errors import InvalidInput
from icefield.table.table import Table

HIGHEST = 2**63 - 1
ROWS = pa.table({"id": [1]})


def table_with(directory: Path, change: Callable[[Any], None], version: int = 2) -> Table:
    """Make a table of one row, and change its metadata on disk."""
    table = icefield.connect(directory, durable=False).create_table("a.t", "id long", format_version=version)
    table.append(ROWS)
    file = Path(table.metadata_location.removeprefix("file://"))
    document = json.loads(file.read_bytes())
    change(document)
    file.write_text(json.dumps(document))
    return icefield.connect(directory, durable=False).table("a.t")


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("0", 0), ("007", 7), (str(HIGHEST), HIGHEST), (str(HIGHEST + 1), None), ("9" * 5000, None), ("-1", None),
        ("", None), (" 1", None), ("1e3", None), ("\u0661", None), ("\u00b2", None), (None, None),
    ],
)  # fmt: skip
def test_a_text_is_a_number_of_up_to_64_bits_or_none(text: str | None, number: int | None) -> None:
    assert whole_number(text) == number


@pytest.mark.parametrize("total", ["9" * 5000, "x", "-3", "\u00b2", str(HIGHEST + 1)])
def test_a_total_that_is_no_number_is_left_out(tmp_path: Path, total: str) -> None:
    table = table_with(tmp_path, lambda m: m["snapshots"][-1]["summary"].update({"total-records": total}))
    snapshot = table.append(ROWS)
    assert snapshot is not None
    assert "total-records" not in snapshot.summary
    assert snapshot.summary["total-data-files"] == "2"
    assert table.count() == 2


def test_no_snapshot_follows_the_highest_sequence_number(tmp_path: Path) -> None:
    table = table_with(tmp_path, lambda m: m.update({"last-sequence-number": HIGHEST}))
    before = {file for file in tmp_path.rglob("*") if file.suffix in (".parquet", ".avro", ".json")}
    with pytest.raises(InvalidInput, match="sequence number"):
        table.append(ROWS)
    assert {file for file in tmp_path.rglob("*") if file.suffix in (".parquet", ".avro", ".json")} == before
    assert table.count() == 1


def test_no_row_id_is_beyond_64_bits(tmp_path: Path) -> None:
    table = table_with(tmp_path, lambda m: m.update({"next-row-id": HIGHEST}), version=3)
    with pytest.raises(InvalidInput, match="row id"):
        table.append(ROWS)
    assert table.count() == 1


@pytest.mark.parametrize("batch", [{}, {BATCH_KEY: "x"}, {BATCH_KEY: "9" * 5000}, {BATCH_KEY: "-1"}])
def test_a_stream_without_a_number_is_not_remembered(batch: dict[str, str]) -> None:
    memory = Memory(marks={"clicks": 3})
    assert memory.with_summary({STREAM_KEY: "clicks", **batch}) == memory
    assert memory.without_summary({STREAM_KEY: "clicks", PREVIOUS_KEY: "x"}) == Memory()
