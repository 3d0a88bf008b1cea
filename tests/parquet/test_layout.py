"""What reading derives from a file's columns is derived once for files that are alike, and never for others."""

import pyarrow as pa
import pytest

from icefield.errors import Unsupported
from icefield.expr.bind.bind import bind
from icefield.parquet.read.layout import MOST_LAYOUTS, Layouts
from icefield.types.text import parse_schema

SCHEMA = parse_schema("id long, name string")


def stored(*columns: tuple[str, pa.DataType, int]) -> pa.Schema:
    return pa.schema([pa.field(name, kind, metadata={"PARQUET:field_id": str(i)}) for name, kind, i in columns])


OURS = stored(("id", pa.int64(), 1), ("name", pa.string(), 2))


def test_files_with_the_same_columns_share_a_layout() -> None:
    layouts = Layouts(None)
    assert layouts.find(OURS, "a") is layouts.find(OURS.remove_metadata(), "b")


@pytest.mark.parametrize(
    "other",
    [
        stored(("id", pa.int64(), 2), ("name", pa.string(), 1)),  # equal to Arrow, which ignores the ids
        stored(("id", pa.int32(), 1), ("name", pa.string(), 2)),
        stored(("number", pa.int64(), 1), ("name", pa.string(), 2)),
        stored(("name", pa.string(), 2), ("id", pa.int64(), 1)),
    ],
    ids=["ids", "type", "name", "order"],
)
def test_files_that_differ_have_layouts_of_their_own(other: pa.Schema) -> None:
    layouts = Layouts(None)
    first, second = layouts.find(OURS, "a"), layouts.find(other, "b")
    assert first is not second
    assert list(second.physical) == list(other)


def test_a_layout_is_asked_once_for_the_same_columns_and_filter() -> None:
    layout = Layouts(None).find(OURS, "a")
    where, other = bind("id > 3", SCHEMA), bind("id > 4", SCHEMA)
    first = layout.wanted(SCHEMA, where)
    assert layout.wanted(SCHEMA, where) is first
    second = layout.wanted(SCHEMA, other)
    assert str(first.pushed) != str(second.pushed)
    assert layout.wanted(SCHEMA.select(["id"]), other).names == ("id",)


def test_the_layouts_that_are_kept_are_few() -> None:
    layouts = Layouts(None)
    first = layouts.find(OURS, "a")
    for number in range(MOST_LAYOUTS - 1):
        layouts.find(stored((f"c{number}", pa.int64(), 1)), "b")
    assert layouts.find(OURS, "a") is first
    for number in range(MOST_LAYOUTS):
        layouts.find(stored((f"d{number}", pa.int64(), 1)), "b")
    assert len(layouts._known) == MOST_LAYOUTS
    assert layouts.find(OURS, "a") is not first


def test_columns_without_ids_are_refused_each_time() -> None:
    layouts = Layouts(None)
    for location in ("a", "b"):
        with pytest.raises(Unsupported, match=f"{location} has columns without field ids"):
            layouts.find(pa.schema([("id", pa.int64())]), location)
