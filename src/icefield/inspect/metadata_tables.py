"""Metadata tables: the contents of a table's metadata, as rows.

Names and columns are those of Iceberg's metadata tables; `schemas` and `properties` are Icefield's own.

Raises InvalidInput for an unknown name.
"""

import difflib
from collections.abc import Callable
from functools import partial

from icefield.codec.manifest.header import DATA_MANIFEST, DELETE_MANIFEST
from icefield.errors import InvalidInput
from icefield.inspect.files import entries_table, files_table
from icefield.inspect.history import (
    history_table,
    metadata_log_entries_table,
    properties_table,
    refs_table,
    schemas_table,
    snapshots_table,
)
from icefield.inspect.manifests import all_manifests_table, manifests_table
from icefield.inspect.partitions import partitions_table
from icefield.inspect.position_deletes import position_deletes_table
from icefield.inspect.source import (
    Inspected,
    MetadataTable,
    manifests_of_all_snapshots,
    manifests_of_version,
)

Opener = Callable[[Inspected], MetadataTable]

# Metadata tables of one version.
OF_A_VERSION: dict[str, Opener] = {
    "files": partial(files_table, manifests=manifests_of_version),
    "data_files": partial(files_table, manifests=manifests_of_version, content=DATA_MANIFEST),
    "delete_files": partial(files_table, manifests=manifests_of_version, content=DELETE_MANIFEST),
    "entries": partial(entries_table, manifests=manifests_of_version),
    "manifests": manifests_table,
    "partitions": partitions_table,
    "position_deletes": position_deletes_table,
}
# Metadata tables that do not depend on the version.
OF_THE_TABLE: dict[str, Opener] = {
    "snapshots": snapshots_table,
    "history": history_table,
    "refs": refs_table,
    "metadata_log_entries": metadata_log_entries_table,
    "schemas": schemas_table,
    "properties": properties_table,
    "all_files": partial(files_table, manifests=manifests_of_all_snapshots),
    "all_data_files": partial(files_table, manifests=manifests_of_all_snapshots, content=DATA_MANIFEST),
    "all_delete_files": partial(files_table, manifests=manifests_of_all_snapshots, content=DELETE_MANIFEST),
    "all_entries": partial(entries_table, manifests=manifests_of_all_snapshots),
    "all_manifests": all_manifests_table,
}
METADATA_TABLES = OF_A_VERSION | OF_THE_TABLE


def open_metadata_table(name: str, source: Inspected) -> MetadataTable:
    """Find a metadata table by its name."""
    opener = METADATA_TABLES.get(name.lower())
    if opener is None:
        near = difflib.get_close_matches(name.lower(), METADATA_TABLES, n=1)
        known = ", ".join(METADATA_TABLES)
        hint = f"Did you mean {near[0]!r}?" if near else None
        raise InvalidInput(f"unknown metadata table {name!r} (known: {known})", hint=hint)
    return opener(source)
