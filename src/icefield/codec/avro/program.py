"""Compile a writer's schema and a list of wanted columns to the program that `avro.kernel` runs.

Columns are matched by field id. Unwanted fields are skipped, at any depth. Arrays take two steps: the row's program
records the position and element count of an array, and a second program reads its elements as rows.
Raises ValueError for a schema in which a wanted column cannot be read.

    >>> path = Field("path", 2, Value("string"), null_branch=0)
    >>> schema = Record((Field("id", 1, Value("long")), path, Field("size", 3, Value("long"))))
    >>> program = compile_program(schema, Wanted(values=frozenset({(ROOT_ID, 2), (ROOT_ID, 3)})))
    >>> code = program.code.reshape(-1, WIDTH)[:, :3].tolist()  # instruction, branch that means null, slot
    >>> code == [[VARINT, -1, -1], [BYTES, 0, 0], [VARINT, -1, 0]]  # skip id; path to span 0; size to long 0
    True
    >>> [(column.name, column.slot) for column in program.columns]
    [('path', 0), ('size', 0)]
"""

from dataclasses import dataclass, field

import numpy as np

from icefield.codec.avro.kernel import (
    AGAIN,
    BOOL,
    BYTES,
    ENTER,
    FIXED,
    JUMP,
    LEAVE,
    LOOP,
    MAP_BYTES,
    MAP_LONGS,
    MAX_LOOPS,
    VARINT,
    WIDTH,
)
from icefield.codec.avro.schema import ROOT_ID, Array, Field, Node, Record, StringMap, Value, smallest_size
from icefield.types.arrays import Longs

# A field is identified by the id of the enclosing field and its own id.
Path = tuple[int, int]

_NOWHERE = -2
_LONG_KINDS = ("int", "long")
_BYTES_KINDS = ("bytes", "string")
_FIXED_SIZES = {"boolean": 1, "float": 4, "double": 8}


@dataclass(frozen=True)
class Wanted:
    """What to keep of each row."""

    values: frozenset[Path] = frozenset()
    """Values, and whole arrays."""
    inside: frozenset[int] = frozenset()
    """Fields that are records all of whose values are wanted."""
    spans: frozenset[Path] = frozenset()
    """Composite values whose bytes are wanted as they are."""
    keys: tuple[tuple[Path, tuple[int, ...]], ...] = ()
    """Maps from integers, with the keys whose values are wanted, ascending."""


@dataclass(frozen=True)
class Column:
    """Where a wanted column is stored: the slot of its value or bytes, and for an array how to read its elements."""

    path: Path
    name: str
    node: Node
    slot: int
    key: int | None = None
    count_slot: int = -1
    elements: "Program | None" = None


@dataclass(frozen=True, eq=False)
class Program:
    """Instructions, the wanted map keys, the number of slots of each type, and the columns in file order."""

    code: Longs
    keys: Longs
    longs: int
    spans: int
    columns: tuple[Column, ...]
    smallest_row: int


def compile_program(schema: Record, wanted: Wanted) -> Program:
    """Compile the program that reads the wanted columns of a row."""
    if smallest_size(schema) == 0:
        raise ValueError("the schema describes rows of no bytes")
    compiler = _Compiler(wanted)
    compiler.record(schema, ROOT_ID)
    return compiler.program(smallest_size(schema))


@dataclass
class _Compiler:
    wanted: Wanted
    code: list[int] = field(default_factory=list)
    keys: list[int] = field(default_factory=list)
    longs: int = 0
    spans: int = 0
    columns: list[Column] = field(default_factory=list)

    def program(self, smallest_row: int) -> Program:
        code, keys = np.array(self.code, np.int64), np.array(self.keys, np.int64)
        return Program(code, keys, self.longs, self.spans, tuple(self.columns), smallest_row)

    def record(self, record: Record, record_id: int, loops: int = 0) -> None:
        for each in record.fields:
            self.field(each, record_id, loops)

    def field(self, each: Field, record_id: int, loops: int = 0) -> None:
        """Emit a field; inside loops no value is stored."""
        path = (record_id, _NOWHERE if each.field_id is None else each.field_id)
        keep = loops == 0 and (path in self.wanted.values or record_id in self.wanted.inside)
        match each.node:
            case Value("null"):
                pass
            case Value() as value:
                self._leaf(each, value, path if keep else None)
            case Record() as record:
                begin, slot = self._enter(each, path, loops)
                self.record(record, path[1], loops)
                self._leave(begin, slot)
            case _:
                self._array(each, path, loops, keep=keep)

    def _leaf(self, each: Field, value: Value, path: Path | None) -> None:
        op = _leaf_op(value)
        slot = -1
        if path is not None:
            slot = self._long() if op in (VARINT, BOOL) else self._span()
            self.columns.append(Column(path, each.name, value, slot))
        at = self._emit(op, null=each.null_branch, slot=slot, arg=_FIXED_SIZES.get(value.kind, value.size))
        self.code[at + JUMP] = len(self.code)

    def _array(self, each: Field, path: Path, loops: int, *, keep: bool) -> None:
        begin, slot = self._enter(each, path, loops, keep=keep)
        count_slot = self._long() if keep else -1
        if keep:
            # The elements of a map with string keys cannot be read; reading such a column is an error.
            elements = _compile_elements(each.node) if isinstance(each.node, Array) else None
            self.columns.append(Column(path, each.name, each.node, slot, count_slot=count_slot, elements=elements))
        keys = dict(self.wanted.keys).get(path) if loops == 0 else None
        pair = _pair(each.node)
        if pair is not None:
            self._map(each, path, pair, keys or (), count_slot)
        elif keys:
            raise ValueError(f"the field {each.name!r} is not a map from integers to integers or bytes")
        else:
            self._loop(each.node, loops + 1, count_slot)
        self._leave(begin, slot)

    def _map(self, each: Field, path: Path, value: Field, keys: tuple[int, ...], count_slot: int) -> None:
        assert isinstance(value.node, Value)
        is_long = value.node.kind in _LONG_KINDS
        slots = [self._long() if is_long else self._span() for _ in keys]
        self.columns += [Column(path, each.name, value.node, s, k) for s, k in zip(slots, keys, strict=True)]
        first = len(self.keys)
        self.keys += keys
        self._emit(
            MAP_LONGS if is_long else MAP_BYTES,
            slot=slots[0] if slots else -1,
            arg=value.null_branch,
            keys=(first, len(self.keys)),
            count=count_slot,
        )

    def _loop(self, node: Node, loops: int, count_slot: int) -> None:
        if loops > MAX_LOOPS:
            raise ValueError("the schema holds arrays nested too deeply")
        loop = self._emit(LOOP)
        body = len(self.code)
        if isinstance(node, StringMap):
            self._emit(BYTES)
            self.field(node.values, _NOWHERE, loops)
        elif isinstance(node, Array):
            self.field(node.items, _NOWHERE, loops)
        self.code[loop + JUMP] = self._emit(AGAIN, arg=body, count=count_slot)

    def _enter(self, each: Field, path: Path, loops: int, *, keep: bool = False) -> tuple[int, int]:
        """Open a composite value: emit the null check and the instruction that stores its begin, where needed."""
        slot = -1
        if loops == 0 and path in self.wanted.spans:
            slot = self._span()
            self.columns.append(Column(path, each.name, Value("bytes"), slot))
        elif keep:
            slot = self._span()
        if slot < 0 and each.null_branch < 0:
            return -1, slot
        return self._emit(ENTER, null=each.null_branch, slot=slot), slot

    def _leave(self, begin: int, slot: int) -> None:
        if slot >= 0:
            self._emit(LEAVE, slot=slot)
        if begin >= 0:
            self.code[begin + JUMP] = len(self.code)

    def _long(self) -> int:
        self.longs += 1
        return self.longs - 1

    def _span(self) -> int:
        self.spans += 1
        return self.spans - 1

    def _emit(
        self, op: int, *, null: int = -1, slot: int = -1, arg: int = 0, keys: tuple[int, int] = (0, 0), count: int = -1
    ) -> int:
        at = len(self.code)
        self.code += (op, null, slot, arg, at + WIDTH, *keys, count)
        return at


def _leaf_op(value: Value) -> int:
    if value.kind in _LONG_KINDS:
        return VARINT
    if value.kind in _BYTES_KINDS:
        return BYTES
    return BOOL if value.kind == "boolean" else FIXED


def _pair(node: Node) -> Field | None:
    """Return the value of a map from integers to integers or bytes, for which there are special instructions."""
    if not isinstance(node, Array) or not isinstance(node.items.node, Record) or node.items.null_branch >= 0:
        return None
    match node.items.node.fields:
        case (Field(node=Value(key), null_branch=-1), Field(node=Value(kind)) as value) if (
            key in _LONG_KINDS and kind in (*_LONG_KINDS, *_BYTES_KINDS)
        ):
            return value
        case _:
            return None


def _compile_elements(node: Array) -> Program:
    """Compile the program of an array's elements, which keeps every value."""
    items = node.items
    compiler = _Compiler(Wanted(inside=frozenset({ROOT_ID})))
    if isinstance(items.node, Record) and items.null_branch < 0:
        compiler.record(items.node, ROOT_ID)
    else:
        compiler.field(items, ROOT_ID)
    return compiler.program(smallest_size(items.node))
