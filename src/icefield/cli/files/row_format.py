"""How files of rows are read: the format of each file, its options, and the types as which values are parsed."""

from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from icefield.errors import InvalidInput
from icefield.types.arrow import arrow_type
from icefield.types.datatypes import NestedField, UUIDType

COMPRESSED = (".gz", ".bz2", ".zst", ".lz4")
# Types are inferred from so much of a file; Arrow's own block is a sixteenth of it.
INFERENCE_BYTES = 1 << 24
PARQUET, CSV, JSON = "parquet", "csv", "json"
KINDS = {".parquet": PARQUET, ".csv": CSV, ".tsv": CSV, ".json": JSON, ".jsonl": JSON, ".ndjson": JSON}
POINT = "."


@dataclass(frozen=True)
class RowFormat:
    """How files are read. kind, delimiter: None is found out for each file. records: where rows are in JSON."""

    kind: str | None = None
    delimiter: str | None = None
    quote: str = '"'
    has_header: bool = True
    nulls: tuple[str, ...] = ("",)
    decimal: str = POINT
    encoding: str = "utf8"
    records: str | None = None


BY_NAME = RowFormat()


def kind_of(path: Path, form: RowFormat) -> str:
    """Return the format of a file: the given one, or the one that its name says."""
    if form.kind is not None:
        return form.kind
    suffixes = [s.lower() for s in path.suffixes]
    if suffixes and suffixes[-1] in COMPRESSED:
        suffixes.pop()
    kind = KINDS.get(suffixes[-1]) if suffixes else None
    if kind is None:
        raise InvalidInput(
            f"cannot determine the format of {path} from its name",
            hint=f"Names end in {', '.join(KINDS)}, and may be compressed ({', '.join(COMPRESSED)}); or give --format",
        )
    return kind


def file_type(field: NestedField) -> pa.DataType:
    # Neither reader supports UUIDs; as strings they are checked when the rows are converted to the table's schema.
    return pa.string() if isinstance(field.type, UUIDType) else arrow_type(field.type)
