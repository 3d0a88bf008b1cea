"""Changes of rows inside files: merge-on-read deletes, and upserts.

Which rows a change takes is known by their places: file and position. Under merge-on-read the places are noted in
delete files; under copy-on-write the files are written anew without those rows.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa

from icefield.commit.files import files_at
from icefield.commit.footing import Footing, KeyRows
from icefield.commit.manifests import NewFiles
from icefield.commit.positions import NOWHERE, DeletedAt
from icefield.commit.row_delta import RowDelta
from icefield.errors import InvalidInput, Unsupported
from icefield.expr.ast import Operator, Predicate
from icefield.expr.bound import Bound, Compare, Reference, all_of, one_of
from icefield.expr.residual import residual
from icefield.model.snapshot import Snapshot
from icefield.parquet.conform import check_schema
from icefield.parquet.deletes import Positions
from icefield.parquet.partial_rows import NO_PLACE, Places, conform_partial, find_unnamed, keep_unnamed
from icefield.parquet.read_ahead import read_ahead
from icefield.parquet.text_check import check_text
from icefield.properties import DELETE_ISOLATION, DELETE_MODE, MERGE_ISOLATION, MERGE_MODE, MERGE_ON_READ
from icefield.rows import arrow_batches, is_spark
from icefield.scan.plan import ScanPlan
from icefield.table_write import TableWrite, Verb
from icefield.types.arrow import arrow_schema, python_values, schema_from_arrow
from icefield.types.arrow_keys import NOT_FOUND, KeyIndex
from icefield.types.datatypes import DoubleType, FloatType, NestedField, PrimitiveType
from icefield.types.metadata_columns import POSITION, ROW_ID, with_free_names
from icefield.types.schema import Schema

DELETE, UPSERT = Verb("delete", DELETE_ISOLATION), Verb("upsert", MERGE_ISOLATION)
MAX_LISTED_KEYS = 200


def delete_matching(write: TableWrite, where: Predicate | str | Any) -> Snapshot | None:
    """Delete the rows that match, in the way that the table's properties say."""
    if DELETE_MODE.read(write.base.properties) != MERGE_ON_READ:
        return write.replace_matching(no_rows(write.base.schema), where, DELETE)
    plan = write.plan(where)
    deleted = dict(_places(write, plan, plan.partial_files))
    footing, nothing = write.footing(plan, DELETE), write.write(no_rows(write.base.schema))
    if not deleted:
        return write.replace_files(nothing, replace(footing, plan=replace(plan, files=plan.whole_files)))
    return _commit_delta(write, nothing, deleted, plan.whole_files, footing)


def no_rows(schema: Schema) -> pa.Table:
    """Return a table without rows; Arrow's own way fails where uuids stand inside other types."""
    return pa.Table.from_batches([], arrow_schema(schema))


def upsert(write: TableWrite, rows: object, on: Sequence[str] | None) -> Snapshot | None:
    """Replace the rows that have the keys of other rows by those, and add the rest of those.

    What the other rows do not name stays as it is in the rows that they replace.
    """
    if is_spark(rows):
        raise Unsupported("upsert takes Arrow data", hint="Collect the changes: df.toArrow()")
    schema, batches = arrow_batches(rows)
    incoming = schema_from_arrow(schema)
    check_schema(incoming, write.base.schema, is_partial=True)
    table = _conformed(map(check_text, batches), write.base.schema)
    keys = _keys(table, incoming, write.base.schema, on)
    if table.num_rows == 0:
        return None
    plan = write.plan_bound(_key_filter(table, keys.columns, write.base.schema))
    footing = replace(write.footing(plan, UPSERT), keys=keys)
    replaced = _find_keys(write, plan, keys, find_unnamed(incoming, write.base.schema))
    table = keep_unnamed(table, incoming, write.base.schema, replaced.rows, replaced.places)
    places = replaced.positions
    touched = files_at(plan.files, places)
    settings = write.write_plan(moves_rows=bool(places))
    if write.base.has_row_ids and places:
        # A row that is replaced stays the same row. (spec: Row lineage assignment)
        table = table.append_column(settings.schema.by_id[ROW_ID.field_id].name, replaced.row_ids)
    if MERGE_MODE.read(write.base.properties) == MERGE_ON_READ and places:
        files = write.write_batches(settings, table.to_batches())
        return _commit_delta(write, files, places, plan.files.slice(0, 0), footing)
    stay = (
        batch
        for reader, task in read_ahead(write.store, write.base, plan.tasks(touched))
        for batch in reader.read_without(task, settings.schema, places[task.location])
    )
    files = write.write_batches(settings, chain(table.to_batches(), stay))
    return write.replace_files(files, replace(footing, plan=replace(plan, files=touched)), touched)


def _commit_delta(
    write: TableWrite, files: pa.Table, deleted: DeletedAt, removed: pa.Table, footing: Footing
) -> Snapshot | None:
    def make() -> RowDelta:
        return RowDelta(
            files=NewFiles(files, write.shape),
            footing=footing,
            target=write.target,
            deleted=deleted,
            removed=removed,
            writer=write.delete_writer(write.write_plan(moves_rows=False)),
        )

    return write.commit(make, files)


def _places(write: TableWrite, plan: ScanPlan, files: pa.Table) -> Iterator[tuple[str, Positions]]:
    """Yield the files that have rows which match the plan's filter, and where in them."""
    schema, (position,) = with_free_names(plan.point.schema, (POSITION,))
    for reader, task in read_ahead(write.store, write.base, plan.tasks(files)):
        batches = reader.read(task, schema, [position], residual(plan.where, task.proven))
        positions = np.concatenate([NOWHERE, *(batch.column(position).to_numpy() for batch in batches)])
        if len(positions):
            yield task.location, positions


@dataclass(frozen=True)
class _Replaced:
    """The rows that an upsert replaces.

    positions: where they are, by file. rows: those of their columns that stay. For each row to upsert, places: which of
    `rows` it replaces; row_ids: the id of that one, or null.
    """

    positions: dict[str, Positions]
    rows: pa.Table
    places: Places
    row_ids: pa.Array


def _find_keys(write: TableWrite, plan: ScanPlan, keys: KeyRows, kept: Sequence[NestedField]) -> _Replaced:
    """Find the rows that have one of the keys."""
    schema, (position, row_id) = with_free_names(plan.point.schema, (POSITION, ROW_ID))
    columns = list(dict.fromkeys([*keys.columns, *(schema.name_of(f.field_id) for f in kept)]))
    order = np.argsort(keys.index.codes)  # which of the rows to upsert has a code
    places, row_ids = np.full(len(order), NO_PLACE), np.zeros(len(order), np.int64)
    is_known = np.zeros(len(order), np.bool_)
    positions: dict[str, list[Positions]] = {}
    rows = [pa.Table.from_batches([], arrow_schema(Schema(tuple(kept))))]
    count = 0
    for reader, task in read_ahead(write.store, write.base, plan.tasks(plan.files)):
        left = residual(plan.where, task.proven)
        for batch in reader.read(task, schema, [position, row_id, *columns], left):
            codes = keys.find(batch)
            hit = codes != NOT_FOUND
            if hit.any():
                found = pa.Table.from_batches([batch]).filter(pa.array(hit))
                positions.setdefault(task.location, []).append(found.column(position).to_numpy())
                ids, at = found.column(row_id), order[codes[hit]]
                row_ids[at], is_known[at] = ids.fill_null(0).to_numpy(), ids.is_valid().to_numpy()
                if kept:
                    _check_one_each(places, at, batch.filter(pa.array(hit)), keys)
                    places[at] = count + np.arange(len(at))
                    rows.append(pa.Table.from_arrays([found.column(f.name) for f in kept], schema=rows[0].schema))
                    count += len(at)
    whole = {path: np.concatenate(found) for path, found in positions.items()}
    return _Replaced(whole, pa.concat_tables(rows), places, pa.array(row_ids, mask=~is_known))


def _check_one_each(places: Places, at: Places, found: pa.RecordBatch, keys: KeyRows) -> None:
    """Refuse a key that two rows of the table have: they may differ in what an upsert does not name."""
    again = np.ones(len(at), np.bool_)
    again[np.unique(at, return_index=True)[1]] = False
    if twice := np.flatnonzero(again | (places[at] != NO_PLACE)).tolist():
        key = {name: found.column(name)[twice[0]].as_py() for name in keys.columns}
        raise InvalidInput(
            f"two rows of the table have the key {key}, so that it is not known whose values to keep",
            hint="Name all columns in the rows to upsert",
        )


def _conformed(batches: Iterable[pa.RecordBatch], schema: Schema) -> pa.Table:
    return pa.Table.from_batches([conform_partial(batch, schema) for batch in batches], arrow_schema(schema))


def _keys(rows: pa.Table, incoming: Schema, schema: Schema, on: Sequence[str] | None) -> KeyRows:
    """Index rows by their key. Raises InvalidInput for a key that tells no row from another, or none."""
    columns = list(on) if on is not None else [schema.by_id[i].name for i in schema.identifier_field_ids]
    if isinstance(on, str) or not columns:
        raise InvalidInput("upsert needs key columns", hint="Write on=['id'], or give the table identifier fields")
    named = {f.name for f in incoming.fields}
    for name in columns:
        _key_reference(name, schema)
        if name not in named:
            raise InvalidInput(f"the rows to upsert do not name the key column {name!r}")
        if rows.column(name).null_count:
            raise InvalidInput(f"a row to upsert has no value in the key column {name!r}")
    arrays = [rows.column(name).combine_chunks() for name in columns]
    index = KeyIndex(arrays, rows.num_rows)
    if len(np.unique(index.codes)) != rows.num_rows:
        twice = int(np.argmax(np.bincount(index.codes)))
        key = {name: rows.column(name)[int(np.argmax(index.codes == twice))].as_py() for name in columns}
        raise InvalidInput(f"two rows to upsert have the key {key}", hint="Keep one row for each key")
    return KeyRows(columns, index)


def _key_filter(rows: pa.Table, columns: Sequence[str], schema: Schema) -> Bound:
    """Build a filter that all rows with one of the keys match: few keys by their values, many by their range."""
    parts: list[Bound] = []
    for name in columns:
        reference = _key_reference(name, schema)
        found = python_values(rows.column(name).combine_chunks().unique(), reference.type)
        values = [value for value in found if value is not None]
        if len(values) <= MAX_LISTED_KEYS:
            parts.append(one_of(reference, values))
        else:
            ordered: list[Any] = sorted(values)
            parts += [Compare(reference, Operator.GE, ordered[0]), Compare(reference, Operator.LE, ordered[-1])]
    return all_of(*parts)


def _key_reference(name: str, schema: Schema) -> Reference:
    """Refer to a key column. Raises InvalidInput for what can be none."""
    known = next((f for f in schema.fields if f.name == name), None)
    if known is None or not isinstance(known.type, PrimitiveType) or isinstance(known.type, FloatType | DoubleType):
        raise InvalidInput(f"{name!r} is no column that can be a key: keys are columns of simple types, not floats")
    return Reference(known.field_id, known.type, (name,))
