"""Upsert by equality deletes, for writers that must not read the table, such as streams.

Equality deletes apply to the files of one partition of one spec, or, in a spec without fields, to all files (spec: Scan
Planning). A row with the same key may be in any file, so the deletes must reach all of them:

    every spec in use has only key columns as sources    the key determines the partition in each: deletes for each
    otherwise                                            deletes of an unpartitioned spec, which is added if missing

Raises Unsupported for format version 1, InvalidInput for rows without all columns, and for keys that are null or not
unique.
"""

from collections.abc import Sequence
from dataclasses import replace

from icefield.codec.manifest.header import DELETE_MANIFEST
from icefield.commit.action import WriteContext
from icefield.commit.actions.equality_upsert import EqualityUpsert, live_spec_ids
from icefield.commit.actions.evolve import AddUnpartitionedSpec, find_unpartitioned_spec
from icefield.commit.loop import propose_all
from icefield.commit.snapshot.manifests import AddedFiles, ManifestShape
from icefield.dml.change import RowChange
from icefield.dml.result import ChangeResult
from icefield.dml.verbs import EQUALITY
from icefield.dml.write import TableWrite
from icefield.engine.equality_upsert import EqualityPlan
from icefield.engine.keys import find_key_columns
from icefield.engine.rows import as_schema, hold_rows
from icefield.errors import InvalidInput, Unsupported
from icefield.model.partition import PartitionSpec
from icefield.parquet.write.conform import check_schema
from icefield.parquet.write.equality_deletes import as_equality_deletes, plan_equality_deletes
from icefield.parquet.write.partial_rows import find_unnamed
from icefield.types.schema import Schema
from icefield.types.transforms import Unknown


def upsert_by_equality(
    change: RowChange, rows: object, on: Sequence[str] | None, *, merges_schema: bool = False
) -> ChangeResult:
    """Add rows, and delete the earlier rows with their keys. merges_schema: add columns that only the rows have."""
    write = change.write
    if change.is_dry_run:
        raise InvalidInput("mode='equality' reads nothing of the table, so that a dry run has nothing to show")
    if write.base.format_version == 1:
        raise Unsupported(
            "format version 1 does not support equality deletes",
            hint="Upgrade the table, or omit mode='equality'",
        )
    write, rows = write.merging(rows) if merges_schema else (write, hold_rows(rows))
    schema = write.base.schema
    columns = _check_rows(as_schema(rows), on, schema)
    field_ids = [f.field_id for f in schema.fields if f.name in columns]
    write, specs = _delete_specs(write, frozenset(field_ids))
    settings = write.write_plan(moves_rows=False)
    deletes = tuple(plan_equality_deletes(settings, columns, spec) for spec in specs)
    with change.timed("rows"):
        done = write.engine(0, rows).upsert_by_equality(rows, EqualityPlan(columns, settings, deletes))
    result = ChangeResult(
        verb=change.verb.name,
        mode=EQUALITY,
        engine=str(write.uses[-1]),
        rows_inserted=sum(done.rows.record_count.to_pylist()),
        files_added=done.rows.num_rows,
        bytes_added=sum(done.rows.file_size_in_bytes.to_pylist()),
        delete_files_added=len(done.delete_locations),
        seconds=change.seconds,
    )
    if done.rows.num_rows == 0:
        return result
    groups = [
        AddedFiles(as_equality_deletes(files, field_ids), ManifestShape(schema, spec, DELETE_MANIFEST))
        for files, spec in zip(done.deletes, specs, strict=True)
    ]
    new = AddedFiles(done.rows, write.shape)
    with change.timed("commit"):
        made = write.commit(lambda: EqualityUpsert(new, groups, write.target), done.rows, done.delete_locations)
    return replace(result, snapshot=made)


def _check_rows(incoming: Schema, on: Sequence[str] | None, schema: Schema) -> tuple[str, ...]:
    """Check the columns of rows, and return those of the key."""
    if unnamed := [f.name for f in find_unnamed(incoming, schema)]:
        raise InvalidInput(
            f"mode='equality' does not read the rows that it replaces, so the rows to upsert need all columns; they "
            f"lack {', '.join(map(repr, unnamed))} or some of its fields",
            hint="Include all columns, or omit mode='equality' to keep the values of missing ones",
        )
    check_schema(incoming, schema)
    return find_key_columns(on, incoming, schema)


def _delete_specs(write: TableWrite, key_ids: frozenset[int]) -> tuple[TableWrite, Sequence[PartitionSpec]]:
    """Return the specs of the delete files, and the change on a table that has them."""
    base = write.base
    in_use = live_spec_ids(write.reading, base.ref_head(write.target.ref)) | {base.default_spec_id}
    specs = [spec for spec in base.specs if spec.spec_id in in_use]
    if all(_is_determined(spec, key_ids) for spec in specs):
        everywhere = [spec for spec in specs if spec.is_unpartitioned]  # with void fields only
        return write, everywhere[:1] or specs
    add = AddUnpartitionedSpec()
    if find_unpartitioned_spec(base) is None:
        base = propose_all([add], base, WriteContext.of(write.head.backend))
        write = replace(write, base=base, before=(*write.before, add))
    spec = find_unpartitioned_spec(base)
    assert spec is not None
    return write, [spec]


def _is_determined(spec: PartitionSpec, key_ids: frozenset[int]) -> bool:
    """Return whether the key of a row determines its partition; an unpartitioned spec has none to determine."""
    return bool(spec.fields) and all(
        key_ids >= set(part.source_ids) and not isinstance(part.transform, Unknown) for part in spec.fields
    )
