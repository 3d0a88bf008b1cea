"""Whether files have the order that they claim, row by row."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from tests.matrix.writing_model import precedes, transformed

from icefield.model.sort_order import SortField
from icefield.table.table import Table
from icefield.types.arrow import python_values
from icefield.types.datatypes import PrimitiveType
from icefield.types.schema import Schema


def false_claims(table: Table) -> list[str]:
    """Return the files that claim an order which their rows do not have, each with the pair of rows that breaks it."""
    files = table.inspect("files").to_arrow().read_all()
    claimed = dict(zip(files["file_path"].to_pylist(), files["sort_order_id"].to_pylist(), strict=True))
    return [
        f"{path}: {fault}"
        for path, rows in rows_by_file(table)
        if claimed[path]
        for fault in _faults(rows, table.metadata.sort_order_by_id(claimed[path]).fields, table.schema)
    ]


def column_of(rows: pa.Table, schema: Schema, field_id: int) -> list[Any]:
    """Return the values of a column that may be inside structs."""
    path, kind = schema.paths[field_id], schema.by_id[field_id].type
    assert isinstance(kind, PrimitiveType)
    column = rows.column(path[0])
    found = pc.struct_field(column, list(path[1:])) if len(path) > 1 else column
    return python_values(found.combine_chunks(), kind)


def rows_by_file(table: Table) -> Iterator[tuple[str, pa.Table]]:
    """Yield each file and its rows, in their order there."""
    names = [f.name for f in table.schema.fields]
    rows = table.scan(select=[*names, "_file", "_pos"]).to_arrow().read_all()
    for path in pc.unique(rows.column("_file")).to_pylist():
        own = rows.filter(pc.equal(rows.column("_file"), path))
        yield path, own.take(pc.sort_indices(own.column("_pos")))


def _faults(rows: pa.Table, fields: Sequence[SortField], schema: Schema) -> Iterator[str]:
    columns = []
    for field in fields:
        kind = schema.by_id[field.source_id].type
        assert isinstance(kind, PrimitiveType)
        values = [transformed(v, kind, field.transform) for v in column_of(rows, schema, field.source_id)]
        columns.append([(v, field.transform.result_type(kind), field) for v in values])
    keys = list(zip(*columns, strict=True))
    for at, (one, next_one) in enumerate(pairwise(keys)):
        for (left, kind, field), (right, _, _) in zip(one, next_one, strict=True):
            before = precedes(left, right, kind, field)
            if before is False:
                yield f"row {at} has {left!r} before {right!r} in {field}"
                return
            if before:
                break
