"""Changes of rows inside files: merge-on-read deletes, and upserts.

Which rows a change takes is known by their places: file and position. Under merge-on-read the places are noted in
delete files; under copy-on-write the files are written anew without those rows.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
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
from icefield.parquet.conform import check_arrow_schema, conform_batch
from icefield.parquet.deletes import Positions
from icefield.parquet.read import table_reader
from icefield.properties import DELETE_ISOLATION, DELETE_MODE, MERGE_ISOLATION, MERGE_MODE, MERGE_ON_READ
from icefield.rows import arrow_batches, is_spark
from icefield.scan.plan import ScanPlan
from icefield.table_write import TableWrite, Verb
from icefield.types.arrow import arrow_schema, python_values
from icefield.types.arrow_keys import NOT_FOUND, KeyIndex
from icefield.types.datatypes import DoubleType, FloatType, PrimitiveType
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
    """Replace the rows that have the keys of other rows by those, and add the rest of those."""
    if is_spark(rows):
        raise Unsupported("upsert takes Arrow data", hint="Collect the changes: df.toArrow()")
    table = _conformed(write, rows)
    keys = _keys(table, write.base.schema, on)
    if table.num_rows == 0:
        return None
    plan = write.plan_bound(_key_filter(table, keys.columns, write.base.schema))
    footing = replace(write.footing(plan, UPSERT), keys=keys)
    places, row_ids = _find_keys(write, plan, keys, table.num_rows)
    touched = files_at(plan.files, places)
    settings = write.write_plan(moves_rows=bool(places))
    if write.base.has_row_ids and places:
        # A row that is replaced stays the same row. (spec: Row lineage assignment)
        table = table.append_column(settings.schema.by_id[ROW_ID.field_id].name, row_ids)
    if MERGE_MODE.read(write.base.properties) == MERGE_ON_READ and places:
        files = write.write_batches(settings, table.to_batches())
        return _commit_delta(write, files, places, plan.files.slice(0, 0), footing)
    reader = table_reader(write.store, write.base)
    stay = (
        batch
        for task in plan.tasks(touched)
        for batch in reader.read_without(task, settings.schema, places[task.location])
    )
    files = write.write_batches(settings, chain(table.to_batches(), stay))
    return write.replace_files(files, replace(footing, plan=replace(plan, files=touched)), touched)


def _commit_delta(
    write: TableWrite, files: pa.Table, deleted: DeletedAt, removed: pa.Table, footing: Footing
) -> Snapshot | None:
    action = RowDelta(
        files=NewFiles(files, write.shape),
        footing=footing,
        target=write.target,
        deleted=deleted,
        removed=removed,
        writer=write.delete_writer(write.write_plan(moves_rows=False)),
    )
    return write.commit(action, files)


def _places(write: TableWrite, plan: ScanPlan, files: pa.Table) -> Iterator[tuple[str, Positions]]:
    """Yield the files that have rows which match the plan's filter, and where in them."""
    reader = table_reader(write.store, write.base)
    schema, (position,) = with_free_names(plan.point.schema, (POSITION,))
    for task in plan.tasks(files):
        batches = reader.read(task, schema, [position], residual(plan.where, task.proven))
        positions = np.concatenate([NOWHERE, *(batch.column(position).to_numpy() for batch in batches)])
        if len(positions):
            yield task.location, positions


def _find_keys(write: TableWrite, plan: ScanPlan, keys: KeyRows, count: int) -> tuple[dict[str, Positions], pa.Array]:
    """Find the rows that have one of the keys: their places by file, and the row id of each key's row, or null."""
    reader = table_reader(write.store, write.base)
    schema, (position, row_id) = with_free_names(plan.point.schema, (POSITION, ROW_ID))
    places: dict[str, list[Positions]] = {}
    row_ids, is_known = np.zeros(count, np.int64), np.zeros(count, np.bool_)
    order = np.argsort(keys.index.codes)  # which of the rows to upsert has a code
    for task in plan.tasks(plan.files):
        left = residual(plan.where, task.proven)
        for batch in reader.read(task, schema, [position, row_id, *keys.columns], left):
            codes = keys.find(batch)
            hit = codes != NOT_FOUND
            if hit.any():
                found = batch.filter(pa.array(hit))
                places.setdefault(task.location, []).append(found.column(position).to_numpy())
                ids, at = found.column(row_id), order[codes[hit]]
                row_ids[at], is_known[at] = ids.fill_null(0).to_numpy(), ids.is_valid().to_numpy(zero_copy_only=False)
    whole = {path: np.concatenate(found) for path, found in places.items()}
    return whole, pa.array(row_ids, mask=~is_known)


def _conformed(write: TableWrite, rows: object) -> pa.Table:
    schema, batches = arrow_batches(rows)
    check_arrow_schema(schema, write.base.schema)
    return pa.Table.from_batches(
        [conform_batch(batch, write.base.schema) for batch in batches], arrow_schema(write.base.schema)
    )


def _keys(rows: pa.Table, schema: Schema, on: Sequence[str] | None) -> KeyRows:
    """Index rows by their key. Raises InvalidInput for a key that tells no row from another, or none."""
    columns = list(on) if on is not None else [schema.name_of(i) for i in schema.identifier_field_ids]
    if isinstance(on, str) or not columns:
        raise InvalidInput("upsert needs key columns", hint="Write on=['id'], or give the table identifier fields")
    for name in columns:
        _key_reference(name, schema)
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
