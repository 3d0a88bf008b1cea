"""An Avro schema as a small tree, with the field ids of the table format. (spec: Appendix A, Avro)

A union is represented only as "this field may be null", with the index of its null branch: the format has no others.
Names are kept but ignored in comparisons: two trees are equal when their rows have the same encoding and ids.
Raises ValueError for a schema that is invalid in Avro or in the table format, or that is too deep or too large.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from icefield.arguments import whole_number

MAX_DEPTH = 16
MAX_NODES = 20_000

# Field ids by (id of the enclosing field, name); the outermost record has this id.
Names = Mapping[tuple[int, str], int]
ROOT_ID = -1


@dataclass(frozen=True)
class Value:
    """A primitive value; `logical` and the fields after it only refine its type."""

    kind: str
    size: int = 0
    logical: str = ""
    precision: int = 0
    scale: int = 0
    adjust_to_utc: bool = False


@dataclass(frozen=True)
class Field:
    """A field of a record, the items of an array or the values of a map."""

    name: str = field(compare=False)
    field_id: int | None
    node: "Node"
    null_branch: int = -1


@dataclass(frozen=True)
class Record:
    fields: tuple[Field, ...]


@dataclass(frozen=True)
class Array:
    """An array; `keyed` means that its items are the key-value pairs of a map."""

    items: Field
    keyed: bool = False


@dataclass(frozen=True)
class StringMap:
    values: Field


Node = Value | Record | Array | StringMap

_WORDS = frozenset({"null", "boolean", "int", "long", "float", "double", "bytes", "string"})
_SIZES = {"null": 0, "float": 4, "double": 8, "boolean": 1}


def parse_schema(text: bytes, names: Names) -> Record:
    """Parse the schema of a file; fields without an id take it from `names`, if listed there."""
    try:
        tree = json.loads(text)
    except RecursionError as error:
        raise ValueError("the schema is nested too deeply") from error
    except ValueError as error:
        raise ValueError(f"the schema is not JSON: {error}") from error
    node, null_branch = _Parser(names).node(tree, ROOT_ID, 0)
    if not isinstance(node, Record) or null_branch >= 0:
        raise ValueError("the schema is not a record")
    return node


def smallest_size(node: Node) -> int:
    """Return the minimum number of bytes of a value of this type."""
    match node:
        case Value("fixed", size):
            return size
        case Value(kind):
            return _SIZES.get(kind, 1)
        case Record(fields):
            return sum(1 if f.null_branch >= 0 else smallest_size(f.node) for f in fields)
        case _:
            return 1


class _Parser:
    """One pass over the JSON, which expands references to named types."""

    def __init__(self, names: Names) -> None:
        self._names = names
        self._defined: dict[str, Any] = {}
        self._nodes = 0

    def node(self, tree: Any, field_id: int, depth: int) -> tuple[Node, int]:
        """Return the node and its null branch."""
        self._nodes += 1
        if depth > MAX_DEPTH or self._nodes > MAX_NODES:
            raise ValueError("the schema is nested too deeply or too large")
        if isinstance(tree, list):
            return self._union(tree, field_id, depth)
        if isinstance(tree, str):
            return self._named(tree, field_id, depth), -1
        if not isinstance(tree, dict):
            raise _unfit(f"{tree!r} where a type should be")
        kind = tree.get("type")
        if isinstance(kind, dict | list):
            return self.node(kind, field_id, depth + 1)
        return self._typed(tree, kind, field_id, depth), -1

    def _union(self, branches: list[Any], field_id: int, depth: int) -> tuple[Node, int]:
        nulls = [index for index, branch in enumerate(branches) if branch in ("null", {"type": "null"})]
        if len(branches) != 2 or not nulls:
            raise _unfit("a union that is not of null and one type")
        null_branch = nulls[0]
        node, inner = self.node(branches[1 - null_branch], field_id, depth + 1)
        if inner >= 0 or node == Value("null"):
            raise _unfit("a union in a union")
        return node, null_branch

    def _named(self, word: str, field_id: int, depth: int) -> Node:
        if word in _WORDS:
            return Value(word)
        tree = self._defined.get(word.rpartition(".")[2])
        if tree is None:
            raise ValueError(f"the schema uses the type {word!r} and does not define it")
        return self._typed(tree, tree["type"], field_id, depth + 1)

    def _typed(self, tree: dict[str, Any], kind: Any, field_id: int, depth: int) -> Node:
        if kind in ("record", "fixed", "enum"):
            self._defined[str(tree.get("name")).rpartition(".")[2]] = tree
        match kind:
            case "record":
                return self._record(tree, field_id, depth)
            case "array":
                items = self._part(tree.get("items"), "element", field_id, tree.get("element-id"), depth)
                if items.null_branch < 0 and smallest_size(items.node) == 0:
                    raise _unfit("an array whose elements have no bytes")
                return Array(items, keyed=tree.get("logicalType") == "map")
            case "map":
                return StringMap(self._part(tree.get("values"), "value", field_id, tree.get("value-id"), depth))
            case "enum":
                return Value("int")
            case str():
                return self._value(tree, kind, field_id, depth)
            case _:
                raise _unfit(f"{kind!r} where a type should be")

    def _record(self, tree: dict[str, Any], field_id: int, depth: int) -> Record:
        trees = tree.get("fields")
        if not isinstance(trees, list):
            raise _unfit("a record without fields")
        fields = tuple(self._field(each, field_id, depth) for each in trees)
        ids = [f.field_id for f in fields if f.field_id is not None]
        if len(set(ids)) != len(ids):
            raise _unfit("a record that uses a field id twice")
        return Record(fields)

    def _field(self, tree: Any, parent_id: int, depth: int) -> Field:
        if not isinstance(tree, dict) or not isinstance(tree.get("name"), str):
            raise _unfit("a field without a name")
        name = str(tree.get("iceberg-field-name", tree["name"]))
        field_id = tree.get("field-id", self._names.get((parent_id, name)))
        return self._part(tree.get("type"), name, parent_id, field_id, depth)

    def _part(self, tree: Any, name: str, parent_id: int, field_id: Any, depth: int) -> Field:
        if isinstance(field_id, str):
            field_id = whole_number(field_id)
        if not isinstance(field_id, int):
            field_id = None
        node, null_branch = self.node(tree, parent_id if field_id is None else field_id, depth + 1)
        return Field(name, field_id, node, null_branch)

    def _value(self, tree: dict[str, Any], kind: str, field_id: int, depth: int) -> Node:
        size = _small_int(tree, "size") if kind == "fixed" else 0
        if kind == "fixed" and size == 0:
            raise _unfit("a fixed type without a size")
        if kind != "fixed" and kind not in _WORDS:
            return self._named(kind, field_id, depth)
        utc = tree.get("adjust-to-utc", False)
        return Value(
            kind,
            size,
            str(tree.get("logicalType", "")),
            _small_int(tree, "precision"),
            _small_int(tree, "scale"),
            adjust_to_utc=utc is True or utc == "true",
        )


def _unfit(what: str) -> ValueError:
    return ValueError(f"the schema holds {what}")


def _small_int(tree: dict[str, Any], key: str) -> int:
    value = tree.get(key, 0)
    if not isinstance(value, int) or not 0 <= value < 1 << 20:
        raise _unfit(f"{key}: {value!r}")
    return value
