"""Deletes by key, as streaming writers of other engines commit them: icefield reads them and makes none."""

import io
import itertools
from collections.abc import Mapping, Sequence

import pyarrow as pa
import pyarrow.parquet as pq

from icefield.cache.reading import ReadContext
from icefield.codec.manifest.header import DELETE_MANIFEST
from icefield.codec.manifest.rows import ManifestEntries
from icefield.codec.manifest.schema import EQUALITY_DELETES, partition_column
from icefield.commit.action import ProposedChange, WriteContext
from icefield.commit.actions.snapshot_update import FilesAction, FilesDraft
from icefield.commit.snapshot.manifest_filter import RemovedFiles
from icefield.commit.snapshot.manifests import AddedFiles, ManifestShape
from icefield.commit.snapshot.summary import tally_deletes
from icefield.commit.validate.read_set import ReadSet, find_starting_snapshot
from icefield.expr.bind.bound import TRUE
from icefield.model.metadata import TableMetadata
from icefield.model.snapshot import MAIN, Operation
from icefield.parquet.write.delete_files import as_delete_columns
from icefield.plan.plan import plan_scan
from icefield.plan.versions import resolve_version
from icefield.properties.table import SNAPSHOT
from icefield.table.table import Table
from icefield.types.arrow import arrow_schema, arrow_type

_NUMBERS = itertools.count()


class AddKeyDeletes(FilesAction):
    """Adds delete files, and removes nothing."""

    def propose_on(self, base: TableMetadata, context: WriteContext) -> ProposedChange:
        manifests, snapshot_id = self._manifests.write(base, context)
        nothing = RemovedFiles(self.read_set.plan.files.slice(0, 0), frozenset())
        deletes = tally_deletes(self.files.columns)
        draft = FilesDraft(snapshot_id, Operation.DELETE, nothing, manifests, added_deletes=deletes)
        return self._propose_draft(draft, base, context)


def delete_keys(
    table: Table, keys: Mapping[str, Sequence[object]], partition: Mapping[str, object] | None = None, spec_id: int = 0
) -> None:
    """Delete the rows with some keys from the files of a partition; of all, where the spec has no fields."""
    base = table.refresh()
    schema, spec = base.schema, next(s for s in base.specs if s.spec_id == spec_id)
    fields = schema.select(list(keys))
    rows = pa.table(
        [pa.array(keys[f.name], arrow_schema(fields).field(f.name).type) for f in fields.fields], arrow_schema(fields)
    )
    sink = io.BytesIO()
    pq.write_table(rows, sink, store_schema=False)
    location = f"{table.location}/data/keys-{next(_NUMBERS)}.parquet"
    store = table._context.store
    store.put_new(location, sink.getvalue())
    described = {
        "content": EQUALITY_DELETES,
        "file_path": location,
        "file_format": "PARQUET",
        "record_count": rows.num_rows,
        "file_size_in_bytes": len(sink.getvalue()),
        "equality_ids": [f.field_id for f in fields.fields],
    }
    columns = {partition_column(f.field_id): [(partition or {})[f.name]] for f in spec.fields}
    kinds = {partition_column(c.field_id): arrow_type(c.type) for c in spec.columns(schema)}
    values = pa.table({name: pa.array(value, kinds[name]) for name, value in columns.items()})
    files = as_delete_columns([described], ManifestEntries(values), spec, schema)
    plan = plan_scan(ReadContext(store), base, resolve_version(base, MAIN), TRUE)
    read_set = ReadSet(plan, MAIN, "delete", SNAPSHOT, find_starting_snapshot(table._head.committed(base), base, MAIN))
    new = AddedFiles(files, ManifestShape(schema, spec, DELETE_MANIFEST))
    table._head.commit([AddKeyDeletes(files=new, read_set=read_set)])
