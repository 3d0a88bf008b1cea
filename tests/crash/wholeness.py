"""What must hold of a lake after a crash: what its tables hold, every file that they need, and nothing more needed."""

import os
import re
import zlib
from pathlib import Path
from typing import Any

import fastavro

from icefield.lake import Lake
from icefield.storage.location import local_path
from icefield.table.table import Table

Content = dict[str, Any]
Fingerprint = frozenset[str]
TEMPORARY = re.compile(r"\.icefield-\d+-\d+")  # the process and thread in a temporary name
DELETED = 2
CATALOG_PREFIX = "catalog."


def content(lake: Lake) -> Content:
    """Read every table: its columns, rows, snapshots, and the rows of its refs."""
    return {name: _content(lake.table(name)) for name in lake.tables()}


def _content(table: Table) -> tuple[Any, ...]:
    operations = [str(snapshot.operation) for snapshot in table.snapshots()]
    columns = [field.name for field in table.schema.fields]
    return (columns, _rows(table), operations, {name: _rows(table.at(name)) for name in table.refs()})


def _rows(table: Table) -> list[dict[str, Any]]:
    found = table.scan().to_arrow().read_all().to_pylist()
    return sorted(found, key=lambda row: (row["id"], str(row)))


def fingerprint(lake: Lake, folder: Path) -> Fingerprint:
    """Tell lakes apart that could behave differently: by their pointers, and by the name and bytes of every file."""
    pointers = [f"{name} {lake.table(name).metadata_location}" for name in lake.tables()]
    files = [f"{TEMPORARY.sub('', str(path))} {zlib.crc32(path.read_bytes())}" for path in _files(folder)]
    return frozenset([*pointers, *files])


def needed_files(lake: Lake) -> set[Path]:
    """Return every file that something refers to, found by another reader of Avro than ours."""
    found: set[Path] = set()
    for name in lake.tables():
        table = lake.table(name)
        found.add(_path(table.metadata_location))
        found |= {_path(entry.metadata_file) for entry in table.metadata.metadata_log}
        for snapshot in table.snapshots():
            assert snapshot.manifest_list
            found.add(_path(snapshot.manifest_list))
            for manifest in _records(_path(snapshot.manifest_list)):
                found.add(_path(manifest["manifest_path"]))
                entries = _records(_path(manifest["manifest_path"]))
                found |= {_path(e["data_file"]["file_path"]) for e in entries if e["status"] != DELETED}
    return found


def check_whole(lake: Lake) -> None:
    """Check that every file is there that is needed, and that every snapshot can be read."""
    missing = {path for path in needed_files(lake) if not path.is_file()}
    assert not missing, f"needed and not there: {missing}"
    for name in lake.tables():
        table = lake.table(name)
        for snapshot in table.snapshots()[:-1]:  # the last one is what `content` reads
            table.scan(as_of=snapshot.snapshot_id).to_arrow().read_all()


def sweep(lake: Lake, folder: Path) -> None:
    """Remove every file that nothing refers to."""
    needed = needed_files(lake)
    for path in _files(folder):
        if path not in needed:
            path.unlink()


def _files(folder: Path) -> list[Path]:
    """List the files of tables; what belongs to the catalog is left out."""
    found = (Path(directory) / name for directory, _, names in os.walk(folder) for name in names)
    return [path for path in found if not path.relative_to(folder).parts[0].startswith(CATALOG_PREFIX)]


def _path(location: str) -> Path:
    return Path(local_path(location))


def _records(path: Path) -> list[dict[str, Any]]:
    with path.open("rb") as file:
        return list(fastavro.reader(file))  # type: ignore[arg-type]
