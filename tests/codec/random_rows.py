"""Random Avro schemas, what is wanted of them, and rows that fit them: for tests that compare the two kernels."""

from dataclasses import dataclass
from random import Random

from tests.codec.avro_writer import long

from icefield.codec.avro.program import Path, Program, Wanted, compile_program
from icefield.codec.avro.schema import ROOT_ID, Array, Field, Node, Record, StringMap, Value

_KINDS = ("int", "long", "boolean", "bytes", "string", "float", "double", "fixed", "null")
_SIZES = {"boolean": 1, "float": 4, "double": 8}
_KEYS = (1, 2, 3, 7, 40, 2147483546)
_DEEPEST = 3
_EDGES = (0, -1, 63, 64, -65, 2**31, 2**63 - 1, -(2**63))


@dataclass
class Schemas:
    """Draw schemas; every field has an id of its own."""

    rng: Random
    ids: int = 0

    def record(self, depth: int = 0) -> Record:
        """Draw a record whose first field takes at least one byte."""
        fields = [self.field(Value("long"))]
        fields += [self.field(self.node(depth + 1)) for _ in range(self.rng.randint(0, 6 if depth == 0 else 3))]
        return Record(tuple(fields))

    def field(self, node: Node) -> Field:
        self.ids += 1
        null = -1 if node == Value("null") else self.rng.choice((-1, -1, 0, 1))
        return Field(f"f{self.ids}", self.ids, node, null)

    def node(self, depth: int) -> Node:
        kind = self.rng.randrange(8 if depth < _DEEPEST else 4)
        if kind < 4:
            name = self.rng.choice(_KINDS)
            return Value(name, self.rng.randint(1, 9) if name == "fixed" else 0)
        if kind == 4:
            return self.record(depth)
        if kind == 5:
            return StringMap(self.field(Value(self.rng.choice(_KINDS))))
        if kind == 6:
            return Array(self.field(self.rng.choice((Value("long"), Value("string"), self.record(depth)))))
        return self.map_from_integers()

    def map_from_integers(self) -> Array:
        """Draw what the kernels have instructions for: pairs of an integer and an integer or bytes."""
        key = Field("key", None, Value("int"))
        value = self.field(Value(self.rng.choice(("long", "bytes", "string"))))
        return Array(Field("pair", None, Record((key, value))), keyed=True)


def random_program(record: Record, rng: Random) -> Program:
    """Compile a program that keeps about half of what a record has."""
    values, spans, inside, keys = set(), set(), set(), []
    for path, node in _nodes(record, ROOT_ID):
        if rng.random() < 0.5 and not isinstance(node, Record):
            values.add(path)
        elif rng.random() < 0.5 and not isinstance(node, Value):
            spans.add(path)
        if isinstance(node, Record) and rng.random() < 0.3:
            inside.add(path[1])
        if isinstance(node, Array) and node.keyed and rng.random() < 0.8:
            keys.append((path, tuple(sorted(rng.sample(_KEYS, rng.randint(1, 4))))))
    return compile_program(record, Wanted(frozenset(values), frozenset(inside), frozenset(spans), tuple(keys)))


def all_programs(program: Program) -> list[Program]:
    """Return a program, and those that read the elements of its arrays."""
    inner = [column.elements for column in program.columns if column.elements is not None]
    return [program, *(each for elements in inner for each in all_programs(elements))]


def random_bytes(node: Node, rng: Random) -> bytes:
    """Write a random value."""
    match node:
        case Value("null"):
            return b""
        case Value("int" | "long"):
            return long(rng.choice(_EDGES) if rng.random() < 0.3 else rng.getrandbits(rng.randint(1, 40)))
        case Value("bytes" | "string"):
            data = rng.randbytes(rng.choice((0, 1, 5, 200)) if rng.random() < 0.3 else rng.randint(0, 9))
            return long(len(data)) + data
        case Value("boolean"):
            return bytes([rng.randrange(2)])
        case Value(kind, size):
            return rng.randbytes(_SIZES.get(kind, size))
        case Record(fields):
            return b"".join(_field_bytes(each, rng) for each in fields)
        case StringMap(values):
            key = Value("string")
            return _runs([random_bytes(key, rng) + _field_bytes(values, rng) for _ in range(_few(rng))], rng)
        case Array(items, keyed):
            element = _pair_bytes if keyed else _field_bytes
            return _runs([element(items, rng) for _ in range(_few(rng))], rng)


def _nodes(record: Record, record_id: int) -> list[tuple[Path, Node]]:
    found: list[tuple[Path, Node]] = []
    for each in record.fields:
        assert each.field_id is not None
        found.append(((record_id, each.field_id), each.node))
        if isinstance(each.node, Record):
            found += _nodes(each.node, each.field_id)
    return found


def _field_bytes(each: Field, rng: Random) -> bytes:
    if each.null_branch < 0:
        return random_bytes(each.node, rng)
    if rng.random() < 0.3:
        return long(each.null_branch)
    return long(1 - each.null_branch) + random_bytes(each.node, rng)


def _pair_bytes(items: Field, rng: Random) -> bytes:
    assert isinstance(items.node, Record)
    return long(rng.choice((*_KEYS, 5))) + _field_bytes(items.node.fields[1], rng)


def _runs(elements: list[bytes], rng: Random) -> bytes:
    """Write an array in runs of any length, with or without their size."""
    out = b""
    while elements:
        count = rng.randint(1, len(elements))
        data = b"".join(elements[:count])
        out += (long(-count) + long(len(data)) if rng.random() < 0.5 else long(count)) + data
        elements = elements[count:]
    return out + b"\0"


def _few(rng: Random) -> int:
    return rng.choice((0, 1, 2, 3, 30)) if rng.random() < 0.5 else rng.randint(0, 5)
