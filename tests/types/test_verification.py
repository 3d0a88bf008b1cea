"""The language-neutral cases of the format's own verification project: every type string and every schema."""

import json
from pathlib import Path
from typing import Any

import pytest

from icefield.codec.json.schema import decode_schema
from icefield.errors import InvalidInput
from icefield.types.datatypes import (
    DecimalType,
    FixedType,
    GeographyType,
    GeometryType,
    NestedField,
    PrimitiveType,
    Type,
    VariantType,
    children,
)
from icefield.types.text import parse_stored_type

pytestmark = pytest.mark.every_case

CASES = Path(__file__).with_name("verification")


def load(name: str) -> list[Any]:
    cases = json.loads((CASES / name).read_text())["cases"]
    return [pytest.param(case, id=case["id"]) for case in cases]


def decoded(kind: PrimitiveType | VariantType) -> dict[str, Any]:
    """A type in the shape that the cases have."""
    match kind:
        case DecimalType(precision, scale):
            return {"type": "decimal", "precision": precision, "scale": scale}
        case FixedType(length):
            return {"type": "fixed", "length": length}
        case GeometryType(crs):
            return {"type": "geometry", "crs": crs}
        case GeographyType(crs, algorithm):
            return {"type": "geography", "crs": crs, "algorithm": algorithm.value}
        case _:
            return {"type": kind.word}


def rows(fields: tuple[NestedField, ...], parent: int | None = None) -> list[list[Any]]:
    """A schema in the shape that the cases have: one row per field, in the order of the document."""
    found: list[list[Any]] = []
    for field in fields:
        found.append([field.field_id, field.name, parent, field.required, shown(field.type), field.doc])
        found += rows(children(field.type), field.field_id)
    return found


def shown(kind: Type) -> str:
    return type(kind).__name__.removesuffix("Type").lower() if children(kind) else str(kind)


@pytest.mark.parametrize("case", load("types.json"))
def test_type_strings(case: dict[str, Any]) -> None:
    if not case["valid"]:
        with pytest.raises(InvalidInput):
            parse_stored_type(case["input"])
        return
    kind = parse_stored_type(case["input"])
    assert decoded(kind) == case["decoded"]
    assert str(kind) == case.get("canonical", str(kind))


@pytest.mark.parametrize("case", load("schemas.json"))
def test_schemas(case: dict[str, Any]) -> None:
    if not case["valid"]:
        with pytest.raises(InvalidInput):
            decode_schema(case["input"])
        return
    schema = decode_schema(case["input"])
    assert schema.schema_id == case["input"]["schema-id"]
    assert list(schema.identifier_field_ids) == case["identifier-field-ids"]
    assert rows(schema.fields) == case["rows"]
