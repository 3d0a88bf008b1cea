"""Values of CSV and JSON, read as the types of a table."""

import datetime
import gzip
import json
import uuid
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.effort import effort

from icefield.cli.files.row_files import read_row_file, row_file_schema
from icefield.cli.files.row_format import RowFormat
from icefield.errors import InvalidInput
from icefield.parquet.write.conform import check_arrow_schema, conform_batch
from icefield.types.arrow import schema_from_arrow
from icefield.types.schema import Schema, assign_fresh_ids
from icefield.types.text import parse_schema

UTC = datetime.UTC
JANUARY = datetime.date(2026, 1, 31)
MAP = {"m": [("a", {"t": datetime.time(10, 20, 30)})]}
UUID = "cfa8eb2a-ef17-4d7a-8b79-d63833d48329"
UUIDS = {"u": uuid.UUID(UUID), "l": [uuid.UUID(UUID), None]}


def value_of(path: Path, content: str, kind: str) -> Any:
    """Read a file with one column x of one row, through all that ingest does to it."""
    path.write_text(content)
    schema: Schema = assign_fresh_ids(parse_schema(f"x {kind}"))
    check_arrow_schema(row_file_schema(path, schema), schema)
    (batch,) = read_row_file(path, schema)
    return conform_batch(batch, schema).column("x").to_pylist()[0]


@pytest.mark.parametrize("form", [f'{{"x": {"[" * 100_000}', "[" * 100_000, f'{{"x": 1}}\n{{"x": {"[" * 100_000}'])
@pytest.mark.parametrize("kind", ["int", "list<int>", None])
def test_json_that_is_nested_too_deeply_cannot_be_read(tmp_path: Path, form: str, kind: str | None) -> None:
    path = tmp_path / "a.json"
    path.write_text(form)
    schema = None if kind is None else assign_fresh_ids(parse_schema(f"x {kind}"))
    with pytest.raises(InvalidInput, match=r"cannot read .*a\.json"):
        list(read_row_file(path, schema))


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
        ('["10:20:30", null]', "list<time>", [datetime.time(10, 20, 30), None]),
        ('[[{"key": "a", "value": "2026-01-31"}], null]', "list<map<string, date>>", [[("a", JANUARY)], None]),
        (f'{{"u": "{UUID}", "l": ["{UUID}", null]}}', "struct<u: uuid, l: list<uuid>>", UUIDS),
        ('{"m": [{"key": "a", "value": {"t": "10:20:30"}}]}', "struct<m: map<string, struct<t: time>>>", MAP),
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
    ("strings", "expected"),
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
def test_the_types_of_texts_are_inferred_at_any_depth(tmp_path: Path, strings: list[str], expected: str) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text("".join(json.dumps({"x": each, "s": {"l": [each]}, "n": None}) + "\n" for each in strings))
    found = schema_from_arrow(row_file_schema(path, None))
    assert [str(found.find_field(name).type) for name in ("x", "s.l.element")] == [expected] * 2


NUMBERS = st.from_regex(r"(0|-?[1-9][0-9]{0,44}|0[0-9]{1,6}|[1-9][0-9]{0,5}\.[0-9]{1,5})?", fullmatch=True)


@effort(60)
@given(st.lists(NUMBERS, min_size=1, max_size=6))
def test_a_new_table_keeps_what_the_cells_of_a_csv_file_say(cells: list[str]) -> None:
    """Zeros at the beginning stay, and whole numbers of any length are not rounded."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "a.csv"
        path.write_text("x,y\n" + "".join(f"{cell},1\n" for cell in cells))
        columns = row_file_schema(path, None)
        schema = schema_from_arrow(pa.schema([f.with_type(pa.string()) if f.type == pa.null() else f for f in columns]))
        found = [each for batch in read_row_file(path, schema) for each in batch.column("x").to_pylist()]
    if columns.field("x").type == pa.float64():
        assert any("." in cell for cell in cells)  # the only reason for a column that can round
        assert found == [float(cell) if cell else None for cell in cells]
    elif columns.field("x").type == pa.string():
        assert found == [cell or None for cell in cells]
    else:
        assert [None if each is None else str(each) for each in found] == [cell or None for cell in cells]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([18446744073709551615, None, -1], "decimal(38, 0)"),
        ([9223372036854775807, None], "long"),
        ([18446744073709551615, 1.5], "double"),
        ([10**38, 1], "double"),
    ],
)
def test_whole_numbers_of_json_beyond_64_bits_are_decimals_at_any_depth(
    tmp_path: Path, values: list[Any], expected: str
) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text("".join(json.dumps({"x": each, "s": {"l": [each]}, "n": None}) + "\n" for each in values))
    found = schema_from_arrow(row_file_schema(path, None))
    assert [str(found.find_field(name).type) for name in ("x", "s.l.element")] == [expected] * 2
    read = [each for batch in read_row_file(path, found) for each in batch.column("x").to_pylist()]
    assert read == ([float(each) for each in values] if expected == "double" else values)


FORMS = {
    "lines": '{"d": 0.1234567890123456789, "t": "a\\nb [}"}\n{"d": 1E-5}\n',
    "an array": '[{"d": 0.1234567890123456789,\r\n "t": "a\\nb [}"}, {"d":\n1E-5}]',
    "objects": '{"d": 0.1234567890123456789,\n"t": "a\\nb [}"}\n\n{"d": 1E-5}',
    "in a document": '{"v": [[1], {"r": 2}], "r": {"n": "]}", "s": [{"d": 0.1234567890123456789, "t": "a\\nb [}"},'
    '{"d": 1E-5}]}, "w": "x"}',
}


@pytest.mark.every_case
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "latin1"])
def test_every_form_of_json_keeps_all_digits_of_a_decimal(tmp_path: Path, form: str, encoding: str) -> None:
    path = tmp_path / "a.json"
    path.write_text(FORMS[form].replace("a\\nb", "é\\nb"), encoding=encoding, newline="")
    given = RowFormat(records="r.s" if form == "in a document" else None)
    if encoding == "latin1":
        given = replace(given, encoding=encoding)
    schema = assign_fresh_ids(parse_schema("d decimal(38, 19), t string"))
    rows = [row for batch in read_row_file(path, schema, given) for row in batch.to_pylist()]
    assert rows == [
        {"d": Decimal("0.1234567890123456789"), "t": "é\nb [}"},
        {"d": Decimal("0.00001").quantize(Decimal(1).scaleb(-19)), "t": None},
    ]


@pytest.mark.every_case
@pytest.mark.parametrize(
    ("document", "said"),
    [
        ('{"r": {"s": [{"d": 1}]', "expected a comma"),
        ('{"r": {"s": [{"d": 1}', "expected a comma"),
        ('{"r": {"s": [{"d": 1}]}} x', "text after the document"),
        ('{"r": {"s": [{"d": 1}]}, "r": {"s": []}}', "'r' of 'r.s' is in the document twice"),
        ('{"r": {"t": []}}', "no 's' of 'r.s'"),
        ('{"r": [1]}', "no object on the way"),
        ('{"r": {"s": [1]}}', "expected JSON objects, found 1"),
    ],
)
def test_a_document_that_is_cut_or_has_no_records_is_refused(tmp_path: Path, document: str, said: str) -> None:
    path = tmp_path / "a.json"
    path.write_text(document)
    with pytest.raises(InvalidInput, match=said):
        list(read_row_file(path, assign_fresh_ids(parse_schema("d int")), RowFormat(records="r.s")))


def test_a_name_that_is_twice_in_an_object_is_refused_in_every_form(tmp_path: Path) -> None:
    for name, text in [("a.jsonl", '{"d": 1, "d": 2}\n'), ("b.json", '[{"d": 1, "d": 2}]')]:
        (tmp_path / name).write_text(text)
        with pytest.raises(InvalidInput, match="twice"):
            list(read_row_file(tmp_path / name, assign_fresh_ids(parse_schema("d int"))))


@pytest.mark.every_case
@pytest.mark.parametrize(
    ("name", "content"),
    [("a.csv", b"id,name\n1,M\xfcller\n"), ("a.json", b'{"name": "a"}\n{"name": "M\xfcller"}\n')],
)
def test_text_that_is_not_utf_8_is_no_column_of_a_new_table(tmp_path: Path, name: str, content: bytes) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(InvalidInput) as caught:
        row_file_schema(path, None)
    assert "--encoding" in (caught.value.hint or "")
    columns = row_file_schema(path, None, RowFormat(encoding="latin1"))
    assert columns.field("name").type == pa.string()


def test_a_csv_file_of_utf_16_is_known_by_its_mark(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("id\tname\n1\té\n", encoding="utf-16")
    schema = schema_from_arrow(row_file_schema(path, None))
    assert [row for batch in read_row_file(path, schema) for row in batch.to_pylist()] == [{"id": 1, "name": "é"}]


def test_rows_of_some_megabytes_are_read(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text("".join(json.dumps({"x": letter * (3 << 20)}) + "\n" for letter in "abcdefgh"))
    found = schema_from_arrow(row_file_schema(path, None))
    assert str(found.find_field("x").type) == "string"
    rows = [len(each) for batch in read_row_file(path, found) for each in batch.column("x").to_pylist()]
    assert rows == [3 << 20] * 8


def test_a_quoted_line_break_is_part_of_the_value(tmp_path: Path) -> None:
    assert value_of(tmp_path / "a.csv", 'x\n"a\nb"\n', "string") == "a\nb"


ALL = """
id long, amt double, d decimal(9, 2), n int, day date, ts timestamptz, local timestamp, ok boolean, name string,
s struct<a: int>"""


@pytest.mark.every_case
@pytest.mark.parametrize(
    ("column", "value", "said", "hint"),
    [
        ("amt", "1,5", "'1,5' is not a valid double", "--decimal ,"),
        ("amt", "1.234,56", "'1.234,56' is not a valid double", "--decimal ,"),
        ("d", "-0,5", "'-0,5' is not a valid decimal(9, 2)", "--decimal ,"),
        ("amt", "1,234.5", "'1,234.5' is not a valid double", "separators of thousands"),
        ("d", "1.555", "'1.555' is not a valid decimal(9, 2)", ""),
        ("n", "3000000000", "'3000000000' is not a valid int", "Correct it"),
        ("n", "n/a", "'n/a' is not a valid int", "--null n/a"),
        ("n", "it's", '"it\'s" is not a valid int', "Correct it"),
        ("day", "31.01.2026", "'31.01.2026' is not a valid date", "2026-01-31"),
        ("ts", "2026-01-31T10:20:30", "'2026-01-31T10:20:30' is not a valid timestamptz", "offset"),
        ("local", "2026-01-31T10:20:30Z", "'2026-01-31T10:20:30Z' is not a valid timestamp", "without an offset"),
        ("local", "2026-01-31T10:20:30.1234567", "'2026-01-31T10:20:30.1234567' is not a valid timestamp", "_ns"),
        ("ok", "maybe", "'maybe' is not a valid boolean", "true or false"),
    ],
)
@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".json", ".csv.gz"])
def test_a_value_that_cannot_be_read_is_named_with_its_row_and_column(
    tmp_path: Path, column: str, value: str, said: str, hint: str, suffix: str
) -> None:
    """The row is behind many others, so that it is in a later batch than the first."""
    schema, path, before = assign_fresh_ids(parse_schema(ALL)), tmp_path / f"a{suffix}", 9_000
    rows = [{"id": n, column: None} for n in range(before)] + [{"id": 0, column: value}]
    if ".csv" in suffix:
        text = f"id,{column}\n" + "".join(
            f'{row["id"]},"{row[column] or 1}"\n' if row[column] else f"{row['id']},\n" for row in rows
        )
    elif suffix == ".json":
        text = json.dumps(rows)
    else:
        text = "\n\n".join(map(json.dumps, rows))
    path.write_bytes(gzip.compress(text.encode()) if suffix.endswith(".gz") else text.encode())
    with pytest.raises(InvalidInput) as caught:
        list(read_row_file(path, schema))
    assert str(caught.value.message) == f"cannot read {path}: row 9,001, column {column}: {said}"
    assert caught.value.hint is not None
    if ".csv" in suffix:
        assert hint in caught.value.hint


@pytest.mark.parametrize(
    ("name", "content", "said", "hint"),
    [
        ("a.csv", b"id,name\n1,a\n2,M\xfcller\n", "row 2, column name: b'M\\xfcller' is not UTF-8", "--encoding"),
        ("a.csv", b"id,n\n1,2\n2,3,4\n", "a row has 3 cells, and the first line 2: 2,3,4", "--delimiter"),
        ("a.csv", b"id,id\n1,2\n", "several columns of the name id", "unique"),
        ("a.csv", b'id,n\n1,2\n2,"\n\n7"\n3,x\n', "row 2, column n: '\\n\\n7' is not a valid int", "Correct it"),
        ("a.json", b'{"id": 1}\n{"id": 2, "zz": 1}\n', "row 2 has a column 'zz', which is not in the table", "id, amt"),
        (
            "a.json",
            b'{"id": 1}\n{"s": {"a": "x"}}\n',
            'row 2, column s: \'{"a": "x"}\' is not a valid struct',
            "Correct",
        ),
        ("a.json", b'{"id": 1}\n{"id": 2,\n', "row 2 is not a JSON object", ""),
        ("a.json", b'{"id": 1}\n[1]\n', "row 2 is not a JSON object: [1]", ""),
    ],
)
def test_other_faults_of_a_file_are_named_too(tmp_path: Path, name: str, content: bytes, said: str, hint: str) -> None:
    schema, path = assign_fresh_ids(parse_schema(ALL)), tmp_path / name
    path.write_bytes(content)
    with pytest.raises(InvalidInput) as caught:
        [row_file_schema(path, schema), *read_row_file(path, schema)]
    assert said in caught.value.message
    assert hint in (caught.value.hint or "")


def test_the_types_of_a_new_table_are_those_of_all_its_first_rows(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"s": {"a": 1}}\n{"s": {"a": "x"}}\n')
    with pytest.raises(InvalidInput, match=r"row 2, column s\.a: a string, and a number in a row before"):
        row_file_schema(path, None)


@pytest.mark.parametrize(("text", "kind"), [("12,5", "double"), ("-3,25", "decimal(9, 2)"), ("7", "long")])
def test_decimal_commas_are_read_on_request(tmp_path: Path, text: str, kind: str) -> None:
    path, form = tmp_path / "a.csv", RowFormat(decimal=",")
    path.write_text(f"x;y\n{text};1\n")
    schema = assign_fresh_ids(parse_schema(f"x {kind}, y int"))
    (batch,) = read_row_file(path, schema, form)
    assert float(batch.column("x").to_pylist()[0]) == float(text.replace(",", "."))
    assert str(schema_from_arrow(row_file_schema(path, None, form)).find_field("x").type) in (kind, "double")
    path.write_text('x,y\n"12,5",1\n')  # the same character separates cells
    assert row_file_schema(path, None, form).types[0] == pa.float64()
