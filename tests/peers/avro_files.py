"""Avro files as fastavro reads them, and their schemas laid flat for comparison."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import fastavro

NOT_COMPARED = ("type", "fields", "items", "name", "doc", "namespace")


@dataclass(frozen=True)
class AvroFile:
    """A whole file."""

    header: dict[str, str]
    schema: dict[str, Any]
    records: list[dict[str, Any]]


def read_avro(location: str) -> AvroFile:
    """Read a file by its location."""
    with Path(location.removeprefix("file://")).open("rb") as source:
        reader: Any = fastavro.reader(source)
        header: dict[str, str] = dict(reader.metadata)
        return AvroFile(header, json.loads(header["avro.schema"]), list(reader))


def flat_schema(schema: Any, path: str = "") -> dict[str, Any]:
    """Lay a schema flat: a path for each type and field, with all that is said there but docs and order.

    A `?` marks what may be null, `[]` the elements of an array, `name@` what is said of a field beside its type.
    """
    return dict(_lay_flat(schema, path))


def _lay_flat(schema: Any, path: str) -> Iterator[tuple[str, Any]]:
    if isinstance(schema, list):
        (inner,) = (branch for branch in schema if branch != "null")
        assert schema[0] == "null", f"the default of {path} is null, so null must come first"
        yield from _lay_flat(inner, f"{path}?")
    elif isinstance(schema, str):
        yield path, schema
    elif schema["type"] == "record":
        yield path, {"record": schema["name"]}
        for field in schema["fields"]:
            yield f"{path}/{field['name']}@", _said(field)
            yield from _lay_flat(field["type"], f"{path}/{field['name']}")
    elif schema["type"] == "array":
        yield path, _said(schema)
        yield from _lay_flat(schema["items"], f"{path}[]")
    elif isinstance(schema["type"], dict):
        yield from _lay_flat(schema["type"], path)
    else:
        yield path, {"type": schema["type"], "name": schema.get("name"), **_said(schema)}


def _said(node: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in node.items() if key not in NOT_COMPARED}
