"""An upsert in this process: planned files are read one after another and matched by key."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
import pyarrow as pa

from icefield.commit.validate.read_set import KeyRows
from icefield.commit.validate.references import remove_quietly
from icefield.engine.engine import Site
from icefield.engine.file_works import DeletePositions, write_batches
from icefield.engine.rows import arrow_batches
from icefield.engine.upsert import (
    Upserted,
    UpsertPlan,
    UpsertRows,
    find_key_columns,
    index_keys,
    key_filter,
    two_rows_with_key,
)
from icefield.expr.prune.residual import residual
from icefield.model.metadata import TableMetadata
from icefield.parquet.read.deletes import Positions
from icefield.parquet.read.read_ahead import read_ahead
from icefield.parquet.write.conform import check_schema
from icefield.parquet.write.partial_rows import NO_ROW, RowNumbers, conform_partial, find_unnamed, keep_unnamed
from icefield.parquet.write.string_check import check_text
from icefield.plan.plan import ScanPlan
from icefield.types.arrow import arrow_schema, schema_from_arrow
from icefield.types.arrow_keys import NOT_FOUND
from icefield.types.datatypes import NestedField
from icefield.types.metadata_columns import POSITION, ROW_ID, with_free_names
from icefield.types.schema import Schema


def open_arrow_rows(rows: object, on: Sequence[str] | None, schema: Schema) -> UpsertRows | None:
    """Prepare Arrow data to upsert, or return None if it has no rows."""
    columns, batches = arrow_batches(rows)
    incoming = schema_from_arrow(columns)
    check_schema(incoming, schema, is_partial=True)
    key_columns = find_key_columns(on, incoming, schema)
    given = pa.Table.from_batches(map(check_text, batches), columns)
    if given.num_rows == 0:
        return None
    conformed = conform_table(given, schema)
    keys = index_keys(conformed, key_columns)
    return UpsertRows(given, incoming, key_columns, key_filter(conformed, key_columns, schema), keys)


def conform_table(rows: pa.Table, schema: Schema) -> pa.Table:
    """Return rows with all columns of the table."""
    return pa.Table.from_batches([conform_partial(batch, schema) for batch in rows.to_batches()], arrow_schema(schema))


def upsert_here(source: UpsertRows, plan: UpsertPlan, site: Site, base: TableMetadata) -> Upserted:
    """Match rows with planned files, and write the results."""
    assert source.keys is not None
    table = conform_table(source.rows, base.schema)
    found = _find_keys(plan.scan, source.keys, find_unnamed(source.incoming, base.schema), site, base)
    table = keep_unnamed(table, source.incoming, base.schema, found.rows, found.replaced)
    touched = plan.scan.files.at(found.positions)
    settings = plan.settings
    if base.has_row_ids and found.positions:
        # A replaced row keeps its row id. (spec: Row lineage assignment)
        table = table.append_column(settings.schema.by_id[ROW_ID.field_id].name, found.row_ids)
    paths = frozenset(found.positions)
    if plan.deletes is None or not paths:
        stay = (
            batch
            for reader, task in read_ahead(site.store, base, plan.scan.tasks(touched))
            for batch in reader.read_without(task, settings.schema, found.positions[task.location])
        )
        return Upserted(write_batches(settings, chain(table.to_batches(), stay), site.store, site.name), (), paths)
    files = write_batches(settings, table.to_batches(), site.store, site.name)
    pairs = ((task, found.positions[task.location]) for task in plan.scan.tasks(touched))
    try:
        (deleted,) = DeletePositions(plan.deletes, plan.has_vectors).run(pairs, site)
    except BaseException:
        remove_quietly(site.store, files.paths)
        raise
    return Upserted(files, deleted.entries, paths)


@dataclass(frozen=True)
class _Replaced:
    """The rows that an upsert replaces.

    positions: where they are, by file. rows: those of their columns that stay. For each row to upsert, replaced: which
    of `rows` it replaces; row_ids: the id of that one, or null.
    """

    positions: dict[str, Positions]
    rows: pa.Table
    replaced: RowNumbers
    row_ids: pa.Array


def _find_keys(
    plan: ScanPlan, keys: KeyRows, kept: Sequence[NestedField], site: Site, base: TableMetadata
) -> _Replaced:
    """Find the rows that have one of the keys."""
    schema, (position, row_id) = with_free_names(plan.version.schema, (POSITION, ROW_ID))
    columns = list(dict.fromkeys([*keys.columns, *(schema.name_of(f.field_id) for f in kept)]))
    order = np.argsort(keys.index.codes)  # the source row of each code
    replaced, row_ids = np.full(len(order), NO_ROW), np.zeros(len(order), np.int64)
    is_known = np.zeros(len(order), np.bool_)
    positions: dict[str, list[Positions]] = {}
    rows = [pa.Table.from_batches([], arrow_schema(Schema(tuple(kept))))]
    count = 0
    for reader, task in read_ahead(site.store, base, plan.tasks(plan.files)):
        left = residual(plan.where, task.residual_code)
        for batch in reader.read(task, schema, [position, row_id, *columns], left):
            codes = keys.find(batch)
            hit = codes != NOT_FOUND
            if hit.any():
                found = pa.Table.from_batches([batch]).filter(pa.array(hit))
                positions.setdefault(task.location, []).append(found.column(position).to_numpy())
                ids, at = found.column(row_id), order[codes[hit]]
                row_ids[at], is_known[at] = ids.fill_null(0).to_numpy(), ids.is_valid().to_numpy()
                if kept:
                    _check_one_each(replaced, at, batch.filter(pa.array(hit)), keys)
                    replaced[at] = count + np.arange(len(at))
                    rows.append(pa.Table.from_arrays([found.column(f.name) for f in kept], schema=rows[0].schema))
                    count += len(at)
    whole = {path: np.concatenate(found) for path, found in positions.items()}
    return _Replaced(whole, pa.concat_tables(rows), replaced, pa.array(row_ids, mask=~is_known))


def _check_one_each(replaced: RowNumbers, at: RowNumbers, found: pa.RecordBatch, keys: KeyRows) -> None:
    """Raise InvalidInput for a duplicate key in the table: its rows may differ in columns that the source lacks."""
    again = np.ones(len(at), np.bool_)
    again[np.unique(at, return_index=True)[1]] = False
    if twice := np.flatnonzero(again | (replaced[at] != NO_ROW)).tolist():
        raise two_rows_with_key({name: found.column(name)[twice[0]].as_py() for name in keys.columns})
