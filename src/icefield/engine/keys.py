"""Key columns of upserts, the range of keys as a filter, and the errors for keys that are not unique."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from icefield.commit.validate.read_set import KeyRows
from icefield.errors import InvalidInput
from icefield.expr.bind.bound import Bound, Compare, Reference, all_of
from icefield.expr.parse.ast import Operator
from icefield.types.arrow import python_values
from icefield.types.arrow_keys import KeyIndex
from icefield.types.datatypes import DoubleType, FloatType, PrimitiveType
from icefield.types.schema import Schema

MAX_LISTED_KEYS = 200


def find_key_columns(on: Sequence[str] | None, incoming: Schema, schema: Schema) -> tuple[str, ...]:
    """Return the key columns, checked against the table and the rows."""
    columns = tuple(on) if on is not None else identifier_columns(schema)
    if isinstance(on, str) or not columns:
        raise InvalidInput("upsert needs key columns", hint="Pass on=['id'], or set identifier fields on the table")
    named = {f.name for f in incoming.fields}
    for name in columns:
        key_reference(name, schema)
        if name not in named:
            raise InvalidInput(f"the rows to upsert have no key column {name!r}")
    return columns


def identifier_columns(schema: Schema) -> tuple[str, ...]:
    """Return the identifier fields of a table. Raises InvalidInput for one inside a struct."""
    paths = [schema.paths[i] for i in schema.identifier_field_ids]
    for path in paths:
        if len(path) > 1:
            raise InvalidInput(
                f"the identifier field {'.'.join(path)!r} of the table is inside a struct, and cannot be a key column",
                hint="Pass on=[…] with columns of the table",
            )
    return tuple(path[0] for path in paths)


def index_keys(rows: pa.Table, columns: Sequence[str]) -> KeyRows:
    """Index rows by their key. Raises InvalidInput for nulls and duplicate keys."""
    for name in columns:
        if rows.column(name).null_count:
            raise null_in_key(name)
    index = KeyIndex([rows.column(name).combine_chunks() for name in columns], rows.num_rows)
    if len(np.unique(index.codes)) != rows.num_rows:
        twice = int(np.argmax(np.bincount(index.codes)))
        at = int(np.argmax(index.codes == twice))
        raise duplicate_key({name: rows.column(name)[at].as_py() for name in columns})
    return KeyRows(columns, index)


def null_in_key(name: str) -> InvalidInput:
    """Build the error for a null in a key column."""
    return InvalidInput(f"a row to upsert has no value in the key column {name!r}")


def duplicate_key(key: dict[str, object]) -> InvalidInput:
    """Build the error for a duplicate key in the rows to upsert."""
    return InvalidInput(f"two rows to upsert have the key {key}", hint="Keep one row for each key")


def key_range(rows: pa.Table, columns: Sequence[str], schema: Schema) -> Bound:
    """Build a filter from the range of each key column; `rows` have the minima and maxima."""
    parts: list[Bound] = []
    for name in columns:
        reference = key_reference(name, schema)
        parts += _range(reference, python_values(rows.column(name).combine_chunks(), reference.type))
    return all_of(*parts)


def _range(reference: Reference, values: Sequence[Any]) -> list[Bound]:
    ordered = sorted(values)
    return [Compare(reference, Operator.GE, ordered[0]), Compare(reference, Operator.LE, ordered[-1])]


def key_reference(name: str, schema: Schema) -> Reference:
    """Refer to a key column. Raises InvalidInput for a column that cannot be one."""
    known = next((f for f in schema.fields if f.name == name), None)
    if known is None or not isinstance(known.type, PrimitiveType) or isinstance(known.type, FloatType | DoubleType):
        raise InvalidInput(
            f"{name!r} cannot be a key column: keys are columns of the table with a primitive type other than a float"
        )
    return Reference(known.field_id, known.type, (name,))
