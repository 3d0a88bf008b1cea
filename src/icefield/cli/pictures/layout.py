"""How the data files of a table are laid out: how large they are, and which partitions they are in."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from icefield.properties.table import TARGET_FILE_SIZE_BYTES
from icefield.table.table import Table


@dataclass
class PartitionTotals:
    """What the newest version of a table has in one partition."""

    files: int = 0
    rows: int = 0
    bytes: int = 0


@dataclass(frozen=True)
class Layout:
    """The data files of a table; partitions by the text of each field's value."""

    table: str
    sizes: tuple[int, ...]
    target_bytes: int
    partitions: Mapping[tuple[str, ...], PartitionTotals] = field(default_factory=dict)


def load_layout(table: Table) -> Layout:
    """Read the files of the newest version, from metadata."""
    files = table.scan().files()
    partitions: dict[tuple[str, ...], PartitionTotals] = {}
    fields = {spec.spec_id: [field.name for field in spec.fields] for spec in table.metadata.specs}
    for row in files.select(["partition", "spec_id", "record_count", "file_size_in_bytes"]).to_pylist():
        parts = _parts(row["partition"], fields[row["spec_id"]])
        totals = partitions.setdefault(parts, PartitionTotals())
        totals.files += 1
        totals.rows += row["record_count"]
        totals.bytes += row["file_size_in_bytes"]
    target = TARGET_FILE_SIZE_BYTES.read(table.properties)
    return Layout(table.name, tuple(files.column("file_size_in_bytes").to_pylist()), target, partitions)


def _parts(partition: str | None, fields: list[str]) -> tuple[str, ...]:
    """Take `day=2026-01-05/kind=a/b` apart, by the names of the fields: values may have any character."""
    if not partition:
        return ()
    parts, rest = [], partition
    for name in fields[1:]:
        head, found, tail = rest.partition(f"/{name}=")
        if found:
            parts.append(head)
            rest = f"{name}={tail}"
    return (*parts, rest)
