"""What the recipes of PyIceberg share: tables in /icefield-golden, and its own readings of them."""

import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyiceberg
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.io.pyarrow import schema_to_pyarrow
from pyiceberg.manifest import ManifestFile
from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.table.refs import MAIN_BRANCH
from tests.golden.expected import Expected, plain_value, rows_of
from tests.golden.store import ROOT

NAMESPACE = "golden"
FILE_LOCATIONS, PLAIN_LOCATIONS = f"file://{ROOT}", ROOT


@dataclass(frozen=True)
class Recipe:
    """How to make a table; its name and what it shows are the function's.

    history: read each snapshot. root: how locations are spelt.
    """

    make: Callable[["WriteContext"], None]
    filters: Sequence[str] = ()
    history: bool = False
    root: str = FILE_LOCATIONS

    @property
    def name(self) -> str:
        return f"pyiceberg_{self.make.__name__}"

    @property
    def shows(self) -> str:
        return " ".join((self.make.__doc__ or "").split())


class WriteContext:
    """One table in the making."""

    def __init__(self, catalog: SqlCatalog, recipe: Recipe) -> None:
        self.recipe = recipe
        self.folder = Path(ROOT, recipe.name)
        self._catalog = catalog
        shutil.rmtree(self.folder, ignore_errors=True)

    def create(
        self,
        schema: Schema | pa.Schema,
        version: int = 2,
        spec: PartitionSpec = UNPARTITIONED_PARTITION_SPEC,
        **properties: str,
    ) -> Table:
        """Create the table; double underscores in names of properties stand for hyphens, single ones for dots."""
        named = {key.replace("__", "-").replace("_", "."): value for key, value in properties.items()}
        return self._catalog.create_table(
            (NAMESPACE, self.recipe.name),
            schema,
            f"{self.recipe.root}/{self.recipe.name}",
            spec,
            properties={"format-version": str(version), **named},
        )

    def metadata_path(self) -> Path:
        """Return the newest metadata file."""
        return self.folder / "metadata" / self._table().metadata_location.rpartition("/")[2]

    def describe(self) -> Expected:
        """Read the table as PyIceberg does, and put down what it says."""
        table = self._table()
        return {
            "name": self.recipe.name,
            "maker": f"PyIceberg {pyiceberg.__version__}",
            "format_version": table.format_version,
            "shows": self.recipe.shows,
            "metadata": f"{ROOT}/{self.recipe.name}/metadata/{self.metadata_path().name}",
            "columns": [f.name for f in table.schema().fields],
            "rows": _rows(table.scan()),
            "filters": [{"where": w, "rows": _rows(table.scan(row_filter=w))} for w in self.recipe.filters],
            "points": [*_refs(table), *(_history(table) if self.recipe.history else ())],
            **_contents(table),
        }

    def _table(self) -> Table:
        return self._catalog.load_table((NAMESPACE, self.recipe.name))


def _rows(scan: Any) -> list[Any]:
    return rows_of(scan.to_arrow(), schema_to_pyarrow(scan.projection(), include_field_ids=False))


def _point(as_of: int | str, scan: Any) -> dict[str, Any]:
    return {"as_of": as_of, "columns": [f.name for f in scan.projection().fields], "rows": _rows(scan)}


def _refs(table: Table) -> list[dict[str, Any]]:
    return [_point(name, table.scan().use_ref(name)) for name in sorted(table.refs()) if name != MAIN_BRANCH]


def _history(table: Table) -> list[dict[str, Any]]:
    return [_point(s.snapshot_id, table.scan(snapshot_id=s.snapshot_id)) for s in table.snapshots()]


def _contents(table: Table) -> dict[str, Any]:
    """List the manifests of every snapshot, and the live files of every manifest."""
    snapshots, manifests = {}, {}
    for snapshot in table.snapshots():
        listed = snapshot.manifests(table.io)
        snapshots[str(snapshot.snapshot_id)] = [m.manifest_path for m in listed]
        manifests.update({m.manifest_path: _manifest(table, m) for m in listed})
    return {"snapshots": snapshots, "manifests": manifests}


def _manifest(table: Table, manifest: ManifestFile) -> dict[str, Any]:
    spec = table.specs()[manifest.partition_spec_id]
    return {
        "content": int(manifest.content),
        "spec_id": manifest.partition_spec_id,
        "sequence_number": manifest.sequence_number,
        "counts": [manifest.added_files_count, manifest.existing_files_count, manifest.deleted_files_count],
        "files": [
            {
                "path": entry.data_file.file_path,
                "content": int(entry.data_file.content),
                "record_count": entry.data_file.record_count,
                "partition": {
                    f.field_id: plain_value(entry.data_file.partition[at]) for at, f in enumerate(spec.fields)
                },
            }
            for entry in manifest.fetch_manifest_entry(table.io, discard_deleted=True)
        ],
    }
