"""Which rows of planned files are deleted by now, and delete files that say so of further ones.

Deletes are known by position here: of a file that is still there, somebody else may have deleted other rows meanwhile,
and both deletes hold. A version 3 table has one deletion vector for a data file, so the new vector holds what the old
one held; older versions have any number of position delete files. (spec: Deletion Vectors, Position Delete Files)
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from icefield.codec.manifest_header import DELETE_MANIFEST
from icefield.commit.action import Workshop
from icefield.commit.files import files_at, paths_of
from icefield.commit.footing import Footing
from icefield.commit.manifests import ManifestShape, NewFiles
from icefield.errors import Unsupported
from icefield.model.metadata import TableMetadata
from icefield.model.partition import PartitionSpec
from icefield.parquet.delete_files import DeletePlace, as_delete_columns, write_positions, write_vectors
from icefield.parquet.deletes import Positions
from icefield.parquet.file_task import DeleteKind
from icefield.parquet.read_ahead import read_ahead, wanted_deletes
from icefield.scan.plan import ScanPlan, plan_scan
from icefield.scan.point import Point
from icefield.storage.store import Store

NOWHERE = np.zeros(0, np.int64)
DeletedAt = Mapping[str, Positions]


@dataclass(frozen=True)
class FileDeletes:
    """What is deleted of some files: positions by file, and the equality delete files that apply to each."""

    positions: dict[str, Positions] = field(default_factory=dict)
    keys: dict[str, frozenset[str]] = field(default_factory=dict)

    def since(self, earlier: "FileDeletes") -> DeletedAt:
        """Return the positions that were not deleted earlier, of the files that have such."""
        later = {path: np.setdiff1d(now, earlier.positions[path]) for path, now in self.positions.items()}
        return {path: positions for path, positions in later.items() if len(positions)}


def load_deletes(plan: ScanPlan, files: pa.Table, metadata: TableMetadata, store: Store) -> FileDeletes:
    """Load what is deleted of files of a plan."""
    found = FileDeletes()
    for reader, task in read_ahead(store, metadata, plan.tasks(files), wanted_deletes):
        found.positions[task.location] = reader.deleted_positions(task)
        found.keys[task.location] = frozenset(d.location for d in task.deletes if d.kind is DeleteKind.EQUALITY)
    return found


def load_deletes_now(footing: Footing, files: pa.Table, base: TableMetadata, store: Store) -> FileDeletes:
    """Load what is deleted by now of planned files. Raises ConcurrentChange if one of them is not there any more."""
    point = Point(base.ref_head(footing.ref), footing.plan.point.schema)
    plan = plan_scan(store, base, point, footing.plan.where)
    paths = paths_of(files)
    found = files_at(plan.files, paths)
    if gone := paths - paths_of(found):
        raise footing.missing(set(gone))
    return load_deletes(plan, found, base, store)


def delete_locations(groups: Sequence[NewFiles]) -> list[str]:
    """Return the delete files of groups; several vectors share one."""
    return list(dict.fromkeys(path for group in groups for path in group.locations))


@dataclass(frozen=True)
class DeleteWriter:
    """Writes deletes of rows in data files, each batch of data files of one spec."""

    place: DeletePlace

    def write(
        self,
        deleted: DeletedAt,
        batches: Sequence[tuple[PartitionSpec, pa.Table]],
        base: TableMetadata,
        workshop: Workshop,
    ) -> list[NewFiles]:
        """Write delete files for all data files of the batches.

        A batch has the locations of data files and their partition values.
        """
        if base.format_version == 1:
            raise Unsupported(
                "tables of format version 1 have no row-level deletes",
                hint="Upgrade the table, or delete by copy-on-write",
            )
        # Another attempt finds other names.
        place = replace(self.place, name=f"{self.place.name}-{workshop.ambient.random_uuid().hex[:8]}")
        return [
            self._write_batch(place, at, deleted, batch, base, workshop)
            for at, batch in enumerate(batches, start=1)
            if batch[1].num_rows
        ]

    def _write_batch(
        self,
        place: DeletePlace,
        number: int,
        deleted: DeletedAt,
        batch: tuple[PartitionSpec, pa.Table],
        base: TableMetadata,
        workshop: Workshop,
    ) -> NewFiles:
        spec, files = batch
        schema = base.schema_of_spec(spec)
        paths = files.column("file_path").to_pylist()
        if base.has_row_ids:
            rows = write_vectors(workshop.store, place, number, {path: deleted[path] for path in paths})
        else:
            rows = [
                write_positions(workshop.store, replace(place, name=f"{place.name}-{number}"), at, path, deleted[path])
                for at, path in enumerate(paths, start=1)
            ]
        columns = as_delete_columns(rows, files.drop_columns("file_path"), spec, schema)
        return NewFiles(columns, ManifestShape(schema, spec, DELETE_MANIFEST))
