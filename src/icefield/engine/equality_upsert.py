"""An upsert by equality deletes: rows in; data files, and delete files of their keys, out. The table is not read.

Raises InvalidInput for nulls and duplicates in the keys: two rows of one snapshot would both stay, because equality
deletes do not apply to it.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import pyarrow as pa

from icefield.codec.manifest.rows import DataFiles
from icefield.engine.keys import index_keys
from icefield.parquet.write.conform import conform_columns
from icefield.parquet.write.plan import WritePlan
from icefield.parquet.write.write import DataWriter
from icefield.storage.store import Store
from icefield.types.arrow import arrow_schema
from icefield.types.schema import Schema


@dataclass(frozen=True)
class EqualityPlan:
    """The inputs. columns: the key columns. rows: settings for data files. deletes: for delete files, by spec."""

    columns: tuple[str, ...]
    rows: WritePlan
    deletes: tuple[WritePlan, ...]


@dataclass(frozen=True)
class EqualityFiles:
    """The written data files, and for each spec the delete files, as files of keys."""

    rows: DataFiles
    deletes: tuple[DataFiles, ...]

    @property
    def delete_locations(self) -> list[str]:
        """The locations of the delete files."""
        return [path for files in self.deletes for path in files.file_path.to_pylist()]


def write_equality_here(
    batches: Iterable[pa.RecordBatch], plan: EqualityPlan, store: Store, name: str
) -> EqualityFiles:
    """Write Arrow batches in one pass; only their keys are kept in memory. After an error, remove the files."""
    writers = [DataWriter(settings, store, name) for settings in (plan.rows, *plan.deletes)]
    fields = tuple(f for f in plan.rows.schema.fields if f.name in plan.columns)
    keys = [pa.Table.from_batches([], arrow_schema(Schema(fields)))]
    try:
        for batch in batches:
            for writer in writers:
                writer.write(batch)
            if batch.num_rows:
                keys.append(pa.Table.from_arrays(conform_columns(batch, fields), schema=keys[0].schema))
        index_keys(pa.concat_tables(keys), plan.columns)
        rows, *deletes = (writer.close() for writer in writers)
    except BaseException:
        for writer in writers:
            writer.abort()
        raise
    return EqualityFiles(rows, tuple(deletes))
