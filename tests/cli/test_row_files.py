"""Values of CSV and JSON, read as the types of a table."""

import datetime
import json
import uuid
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from icefield.cli.files.row_files import read_row_file, row_file_schema
from icefield.errors import InvalidInput
from icefield.parquet.write.conform import check_arrow_schema, conform_batch
from icefield.types.arrow import schema_from_arrow
from icefield.types.schema import Schema, assign_fresh_ids
from icefield.types.text import parse_schema

UTC = datetime.UTC
UUID = "cfa8eb2a-ef17-4d7a-8b79-d63833d48329"


def value_of(path: Path, content: str, kind: str) -> Any:
    """Read a file with one column x of one row, through all that ingest does to it."""
    path.write_text(content)
    schema: Schema = assign_fresh_ids(parse_schema(f"x {kind}"))
    check_arrow_schema(row_file_schema(path, schema), schema)
    (batch,) = read_row_file(path, schema)
    return conform_batch(batch, schema).column("x").to_pylist()[0]


@pytest.mark.parametrize(
    ("text", "kind", "expected"),
    [
        ("true", "boolean", True),
        ("7", "int", 7),
        ("9007199254740993", "long", 9007199254740993),
        ("1.5", "float", 1.5),
        ("-0.25", "double", -0.25),
        ("12.50", "decimal(9, 2)", Decimal("12.50")),
        ("2026-01-31", "date", datetime.date(2026, 1, 31)),
        ("10:20:30.000001", "time", datetime.time(10, 20, 30, 1)),
        ("2026-01-31T10:20:30", "timestamp", datetime.datetime(2026, 1, 31, 10, 20, 30)),
        ("2026-01-31T10:20:30+02:00", "timestamptz", datetime.datetime(2026, 1, 31, 8, 20, 30, tzinfo=UTC)),
        ("NA", "string", "NA"),
        (UUID, "uuid", uuid.UUID(UUID)),
        ("ab", "fixed[2]", b"ab"),
        ("ab", "binary", b"ab"),
    ],
)
def test_csv_and_json_text_is_read_as_the_type_of_the_column(
    tmp_path: Path, text: str, kind: str, expected: object
) -> None:
    assert value_of(tmp_path / "a.csv", f"x\n{text}\n", kind) == expected
    quoted = text if kind in ("boolean", "int", "long", "float", "double") else f'"{text}"'
    assert value_of(tmp_path / "a.json", f'{{"x": {quoted}}}\n', kind) == expected


@pytest.mark.parametrize(
    ("text", "kind", "expected"),
    [
        ('["a", null]', "list<string>", ["a", None]),
        ('{"day": "2026-01-31"}', "struct<day: date>", {"day": datetime.date(2026, 1, 31)}),
        ('[{"key": "a", "value": 1}]', "map<string, int>", [("a", 1)]),
        ("null", "map<string, int>", None),
        ("null", "list<int>", None),
        ("1.5", "decimal(9, 2)", Decimal("1.50")),
    ],
)
def test_nested_json(tmp_path: Path, text: str, kind: str, expected: object) -> None:
    assert value_of(tmp_path / "a.jsonl", f'{{"x": {text}}}\n', kind) == expected


def test_a_map_keeps_its_entries_beside_nulls(tmp_path: Path) -> None:
    path = tmp_path / "a.ndjson"
    path.write_text('{"x": [{"key": "a", "value": 1}]}\n{"x": null}\n{"x": []}\n{"x": [{"key": "b", "value": null}]}\n')
    schema = assign_fresh_ids(parse_schema("x map<string, int>"))
    (batch,) = read_row_file(path, schema)
    assert batch.column("x").to_pylist() == [[("a", 1)], None, [], [("b", None)]]


@pytest.mark.parametrize(
    ("text", "kind"),
    [("2026-01-31T10:20:30", "timestamptz"), ("1.555", "decimal(9, 2)"), ("3000000000", "int"), ("maybe", "boolean")],
)
def test_csv_text_that_is_no_value_of_the_type_is_refused(tmp_path: Path, text: str, kind: str) -> None:
    with pytest.raises(InvalidInput, match=r"cannot read .*a\.csv"):
        value_of(tmp_path / "a.csv", f"x\n{text}\n", kind)


@pytest.mark.parametrize(
    ("text", "kind"), [("2026-01-31T10:20:30", "timestamptz"), ("2026-01-31T10:20:30+02:00", "timestamp")]
)
def test_a_time_with_or_without_an_offset_is_not_taken_for_the_other(tmp_path: Path, text: str, kind: str) -> None:
    for name, content in (("a.csv", f"x\n{text}\n"), ("a.json", f'{{"x": "{text}"}}\n')):
        with pytest.raises(InvalidInput, match="cannot read"):
            value_of(tmp_path / name, content, kind)
    with pytest.raises(InvalidInput, match="cannot read"):
        value_of(tmp_path / "a.json", f'{{"x": ["{text}"]}}\n', f"list<{kind}>")


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["2026-01-31"], "date"),
        (["2026-01-31", "2026-01-31T10:20:30"], "timestamp"),
        (["2026-01-31 10:20:30.25"], "timestamp"),
        (["2026-01-31T10:20:30Z", "2026-01-31T10:20:30.123+02:00"], "timestamptz"),
        (["2026-01-31T10:20:30Z", "2026-01-31T10:20:30"], "string"),
        (["2026-01-31", "later"], "string"),
        (["2026", ""], "string"),
    ],
)
def test_the_types_of_texts_are_inferred_at_any_depth(tmp_path: Path, texts: list[str], expected: str) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text("".join(json.dumps({"x": each, "s": {"l": [each]}, "n": None}) + "\n" for each in texts))
    found = schema_from_arrow(row_file_schema(path, None))
    assert [str(found.find_field(name).type) for name in ("x", "s.l.element")] == [expected] * 2


def test_rows_of_some_megabytes_are_read(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text("".join(json.dumps({"x": letter * (3 << 20)}) + "\n" for letter in "abcdefgh"))
    found = schema_from_arrow(row_file_schema(path, None))
    assert str(found.find_field("x").type) == "string"
    rows = [len(each) for batch in read_row_file(path, found) for each in batch.column("x").to_pylist()]
    assert rows == [3 << 20] * 8


def test_a_quoted_line_break_is_part_of_the_value(tmp_path: Path) -> None:
    assert value_of(tmp_path / "a.csv", 'x\n"a\nb"\n', "string") == "a\nb"
