"""Every decoder of strings and of single values, with samples and the words of its language."""

import json
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any
from uuid import UUID

from tests.fuzz.corpus import File, strings
from tests.fuzz.harness import Decoder
from tests.fuzz.mutate import mutate_bytes, text_mutation
from tests.fuzz.mutate_json import any_json

from icefield.codec.json.name_mapping import decode_name_mapping, encode_name_mapping, map_schema
from icefield.errors import InvalidInput
from icefield.expr.bind.bind import bind
from icefield.model.partition import parse_partition_by
from icefield.model.sort_order import parse_order_by
from icefield.types.datatypes import PrimitiveType
from icefield.types.text import parse_schema, parse_stored_type, parse_type
from icefield.types.transforms import parse_transform
from icefield.types.values.binary import decode_value, encode_value
from icefield.types.values.json import decode_json_value, encode_json_value

SCHEMA = parse_schema(
    "id long not null, name string, price decimal(9, 2), ratio double, f float, day date, clock time, at timestamp, "
    "att timestamptz, flag boolean, u uuid, raw binary, code fixed[4], ns timestamp_ns, `odd name` int, "
    "place struct<city string, zip int, deep struct<x long>>, tags list<string>, extra map<string, double>"
)
SQL = strings(
    "id = 3",
    "id >= -5 AND id < 1e3 OR NOT (name = 'a''b')",
    "name LIKE 'a%\\_b' AND name NOT LIKE '%x%'",
    "day BETWEEN DATE '2026-01-01' AND '2026-12-31'",
    "at > TIMESTAMP '2026-01-01 10:00:00.123456' AND att <= TIMESTAMP '2026-01-01T10:00:00+02:00'",
    "price IN (1.50, 2, 3.25) AND price NOT IN (9.99)",
    "place.city IS NOT NULL AND `odd name` <=> NULL",
    "isnan(ratio) OR NOT isnan(f) OR startswith(name, 'x')",
    "u = 'f79c3e09-677c-4bbd-a479-3f349cb785e7' AND raw = X'00ff'",
    "flag AND NOT flag = true AND clock < '10:00:00'",
    "place.zip IS NULL OR place.deep.x != 9223372036854775807",
    "CAST('7' AS INT) = id AND ns > '2026-01-01T00:00:00.123456789'",
)
SQL_WORDS = (
    *(" AND ", " OR ", " NOT ", " IN (", ")", "(", ",", " BETWEEN ", " LIKE ", " IS NULL ", " = ", " <=> ", " - ", "+"),
    *(
        "DATE ''",
        "TIMESTAMP '",
        "INTERVAL 1 DAY",
        "CAST(",
        " AS ",
        "X'",
        "r'",
        "NULL",
        "TRUE",
        "1e400",
        "0x",
        ".5",
        ";",
    ),
    *("id", "name", "place", ".", "*", "/*", "*/", "SELECT 1", "CASE WHEN", "EXISTS", "@a", ":b", "?", "||", "[0]"),
    *(" COLLATE x", " ESCAPE '", "{{", "$1", "::int", "->", "=>", "lambda", " OVER ()", "NOT " * 2000, "-" * 2000),
)
SCHEMA_STRINGS = strings(
    "id long not null, name string",
    "a decimal(10, 2), b fixed[16], c list<map<string, struct<x: int, y: array<double>>>>, `odd``name` bigint required",
    "g geometry(srid:4326), h geography(OGC:CRS84, vincenty), v variant, u unknown, t timestamptz_ns",
)
TYPE_STRINGS = strings(
    *("int", "timestamptz_ns", "decimal(38, 10)", "fixed[16]", "geometry", "geometry(srid:4326)", "variant"),
    *("geography(OGC:CRS84, karney)", "bucket[16]", "truncate[4]", "identity", "hour"),
)
TYPE_WORDS = (
    "list<",
    "map<string,",
    "struct<a ",
    ">",
    "<",
    "not null",
    "decimal(",
    "fixed[",
    "]",
    ",",
    ":",
    "geometry(",
)
TRANSFORM_WORDS = ("bucket[", "truncate[", "]", "0", "99999999999", "void")
TERMS = strings(
    *("id", "day(at)", "bucket(16, id)", "truncate(name, 4)", "`odd name`", "place.city", "hours(att)", "void(id)"),
    *("bucket(3, `place`.`city`)", "id desc nulls last", "day(at) ASC NULLS FIRST", "truncate(2, price) desc"),
)
TERM_WORDS = ("bucket(", "truncate(", "day(", "void(", ")", ",", "`", ".", " desc", " nulls first", "16", "id", "place")

_VALUES: tuple[tuple[str, Any], ...] = (
    ("boolean", True),
    ("int", -5),
    ("long", 1 << 40),
    ("float", 1.5),
    ("double", -1e300),
    ("date", 20_000),
    ("time", 3_600_000_001),
    ("timestamp", -1),
    ("timestamptz", 1_700_000_000_000_000),
    ("timestamp_ns", 1),
    ("timestamptz_ns", -1),
    ("string", "aé🧊"),
    ("uuid", UUID(int=7)),
    ("fixed[4]", b"abcd"),
    ("binary", b"\0\xff"),
    ("decimal(9, 2)", Decimal("-12.34")),
    ("decimal(38, 38)", Decimal(f"0.{'9' * 38}")),
)


def byte_values() -> Sequence[File]:
    """Return a value of each type as bytes; the name is the type."""
    return tuple(File(kind, encode_value(value, _type(kind))) for kind, value in _VALUES)


def json_values() -> Sequence[File]:
    """Return a value of each type as JSON; the name is the type."""
    return tuple(File(kind, json.dumps(encode_json_value(value, _type(kind))).encode()) for kind, value in _VALUES)


def name_mappings() -> Sequence[File]:
    """Return mappings of a nested schema, and one as people write it."""
    by_hand = (
        '[{"field-id":1,"names":["id","_id"]},{"names":["x"]},{"field-id":2,"names":[],"fields":[{"names":["y"]}]}]'
    )
    return strings(encode_name_mapping(map_schema(SCHEMA)), by_hand)


def decode_byte_value(file: File) -> None:
    decode_value(file.data, _type(file.name))


def decode_json_text(file: File) -> None:
    try:
        value = json.loads(file.data)
    except RecursionError as error:
        raise ValueError("no document") from error
    kind = _type(file.name)
    decoded = decode_json_value(value, kind)
    assert decode_json_value(encode_json_value(decoded, kind), kind) == decoded


def _type(text: str) -> PrimitiveType:
    kind = parse_stored_type(text)
    assert isinstance(kind, PrimitiveType)
    return kind


def _of_text(parse: Callable[[str], Any]) -> Callable[[File], None]:
    """Return the decoder of a file from that of a text; bytes that are not UTF-8 become half surrogates."""

    def decode(file: File) -> None:
        parse(file.data.decode("utf-8", "surrogateescape"))

    return decode


def _mapping(text: str) -> None:
    mapping = decode_name_mapping(text)
    assert decode_name_mapping(encode_name_mapping(mapping)) == mapping


TEXT_DECODERS = (
    Decoder("name-mapping", name_mappings, _of_text(_mapping), any_json, refusals=(InvalidInput,)),
    Decoder("stored-type", lambda: TYPE_STRINGS[:8], _of_text(parse_stored_type), text_mutation(TYPE_WORDS)),
    Decoder("transform", lambda: TYPE_STRINGS[8:], _of_text(parse_transform), text_mutation(TRANSFORM_WORDS)),
    Decoder("type", lambda: TYPE_STRINGS[:8], _of_text(parse_type), text_mutation(TYPE_WORDS)),
    Decoder("schema", lambda: SCHEMA_STRINGS, _of_text(parse_schema), text_mutation(TYPE_WORDS)),
    Decoder("filter", lambda: SQL, _of_text(lambda text: bind(text, SCHEMA)), text_mutation(SQL_WORDS), normal=600),
    Decoder(
        "partition",
        lambda: TERMS[:9],
        _of_text(lambda text: parse_partition_by([text], SCHEMA)),
        text_mutation(TERM_WORDS),
    ),
    Decoder("sort", lambda: TERMS, _of_text(lambda text: parse_order_by([text], SCHEMA)), text_mutation(TERM_WORDS)),
    Decoder("byte-value", byte_values, decode_byte_value, mutate_bytes, many=5000, refusals=(ValueError,)),
    Decoder("json-value", json_values, decode_json_text, any_json, many=5000, refusals=(ValueError,)),
)
