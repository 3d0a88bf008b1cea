"""How files of rows are read: the format of each file, its options, and the types as which values are parsed."""

from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from icefield.cli.files.streams_of_bytes import UTF_8
from icefield.errors import InvalidInput
from icefield.types.arrow import arrow_type
from icefield.types.datatypes import NestedField

COMPRESSED = (".gz", ".bz2", ".zst", ".lz4")
# Types are inferred from so much of a file; Arrow's own block is a sixteenth of it.
INFERENCE_BYTES = 1 << 24
PARQUET, CSV, JSON = "parquet", "csv", "json"
KINDS = {".parquet": PARQUET, ".csv": CSV, ".tsv": CSV, ".json": JSON, ".jsonl": JSON, ".ndjson": JSON}
POINT = "."
# Whole numbers of more than 64 bits: a double, which Arrow takes for them, rounds them.
WHOLE_NUMBER, MOST_WHOLE = pa.decimal128(38, 0), 10**38


@dataclass(frozen=True)
class RowFormat:
    """How files are read. kind, delimiter: None is found out for each file. records: where rows are in JSON."""

    kind: str | None = None
    delimiter: str | None = None
    quote: str = '"'
    has_header: bool = True
    nulls: tuple[str, ...] = ("",)
    decimal: str = POINT
    encoding: str = UTF_8
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
    """Return the type to read values of a column as."""
    return _without_uuids(arrow_type(field.type))


def _without_uuids(kind: pa.DataType) -> pa.DataType:
    """Neither reader supports UUIDs; as strings they are checked when the rows are converted to the table's schema."""
    if isinstance(kind, pa.BaseExtensionType):
        return pa.string()
    if pa.types.is_struct(kind):
        return pa.struct([f.with_type(_without_uuids(f.type)) for f in (kind.field(i) for i in range(kind.num_fields))])
    if pa.types.is_map(kind):
        return pa.map_(_without_uuids(kind.key_type), _without_uuids(kind.item_type))
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_without_uuids(kind.value_type)))
    return kind
