"""Names that columns had before, and what they may be used for.

Spark finds columns by field id but pushes filters into Parquet by name, so that it skips no row groups of a file that
has the column under an older name. Files do not say under which; the schema of the snapshot that added them does, in
all likelihood. A wrong guess costs time alone: a name is used only if it never stood for anything but that column.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa

from icefield.model.metadata import TableMetadata
from icefield.scan.residuals import MOST_GROUPS
from icefield.types.datatypes import walk
from icefield.types.schema import Schema

Names = Mapping[int, str]


def group_by_names(metadata: TableMetadata, schema: Schema, files: pa.Table) -> Iterator[tuple[Names, pa.Table]]:
    """Cut files into groups, each with the names to read top columns of a schema by; those not named kept theirs.

    A group costs a scan, so that there are few; what is left over is read by the names of today.
    """
    older = find_older_names(schema, metadata.schemas)
    if not older or not files.num_rows:
        yield {}, files
        return
    names = _names_by_snapshot(metadata, older)
    distinct = list(dict.fromkeys([(), *names.values()]))
    adders, of_file = np.unique(files.column("snapshot_id").fill_null(0).to_numpy(), return_inverse=True)
    places = np.array([distinct.index(names.get(adder, ())) for adder in adders.tolist()])[of_file]
    totals = np.bincount(places, files.column("file_size_in_bytes").to_numpy(), len(distinct))
    largest = np.argsort(-totals, kind="stable")[:MOST_GROUPS]
    apart = [place for place in largest.tolist() if distinct[place] and totals[place]]
    for place in apart:
        yield dict(distinct[place]), files.filter(pa.array(places == place))
    together = ~np.isin(places, apart)
    if together.any():
        yield {}, files.filter(pa.array(together))


def find_reused_names(schema: Schema, history: Iterable[Schema]) -> set[int]:
    """Return the ids of columns whose name, at any depth, also stood for another column of the table."""
    meanings = _meanings((schema, *history))
    return {i for i, path in schema.paths.items() if len(meanings[".".join(path).lower()]) > 1}


def find_older_names(schema: Schema, history: Sequence[Schema]) -> dict[int, set[str]]:
    """Return other names that top columns had, and that never stood for another column."""
    renamed = {
        (field.field_id, field.name)
        for version in history
        for field in version.fields
        if field.field_id in schema.by_id and schema.by_id[field.field_id].name != field.name
    }
    meanings = _meanings((schema, *history)) if renamed else {}
    older: dict[int, set[str]] = {}
    for field_id, name in renamed:
        if len(meanings[name.lower()]) == 1:
            older.setdefault(field_id, set()).add(name)
    return older


def _meanings(schemas: Iterable[Schema]) -> dict[str, set[int]]:
    """Return the fields that each name stood for; Spark does not tell names apart by their case."""
    meanings: dict[str, set[int]] = {}
    for schema in schemas:
        for path, field in walk(schema.struct):
            meanings.setdefault(".".join(path).lower(), set()).add(field.field_id)
    return meanings


def _names_by_snapshot(
    metadata: TableMetadata, older: Mapping[int, set[str]]
) -> dict[int, tuple[tuple[int, str], ...]]:
    """Return the older names in the schema of each snapshot that is known."""
    of_schema = {
        schema.schema_id: tuple((f.field_id, f.name) for f in schema.fields if f.name in older.get(f.field_id, ()))
        for schema in metadata.schemas
    }
    return {s.snapshot_id: of_schema.get(s.schema_id, ()) for s in metadata.snapshots if s.schema_id is not None}
