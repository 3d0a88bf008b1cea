"""Which columns of a manifest to decode, and the program that decodes them from a file's own schema."""

import json
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

from icefield.codec.avro.program import Program, Wanted, compile_program
from icefield.codec.avro.schema import ROOT_ID, parse_schema
from icefield.codec.manifest.schema import (
    DATA_FILE_FIELDS,
    DATA_FILE_ID,
    ENTRY_FIELDS,
    KINDS,
    NAMES,
    PARTITION_ID,
    PATHS,
)
from icefield.errors import InvalidInput
from icefield.model.partition import FIRST_PARTITION_FIELD_ID

DATA_FILE_COLUMN = "data_file"


@dataclass(frozen=True)
class ManifestColumns:
    """Which columns to decode.

    `fields` names columns of `entry_arrow_schema`; `bounds`, `counts` and `sizes` list the field ids whose statistics
    become separate columns: lower.<id>, upper.<id>; value_count.<id>, null_count.<id>, nan_count.<id>;
    column_size.<id>. `data_file` adds the encoded bytes of each data_file record.
    """

    fields: tuple[str, ...]
    partition: bool = True
    bounds: tuple[int, ...] = ()
    counts: tuple[int, ...] = ()
    sizes: tuple[int, ...] = ()
    data_file: bool = False

    def __post_init__(self) -> None:
        unknown = sorted(set(self.fields) - set(KINDS))
        if unknown:
            raise InvalidInput(f"unknown manifest columns: {', '.join(unknown)}")

    def with_statistics(self, field_ids: Iterable[int]) -> "ManifestColumns":
        """Return these columns with the bounds and counts of the given fields added."""
        ids = tuple(sorted(set(field_ids)))
        return replace(self, bounds=ids, counts=ids)

    def without(self, names: Collection[str]) -> "ManifestColumns":
        """Return these columns without the given ones."""
        return replace(self, fields=tuple(name for name in self.fields if name not in names))

    def names(self) -> list[str]:
        """Return the names of all columns except those of the partition, which are in the file's own schema."""
        return [*self.fields, *(f"{prefix}.{i}" for prefix, _, ids in self.statistics() for i in ids)]

    def judged_names(self) -> list[str]:
        """Return the names of the columns that are only used to evaluate filters: bounds and counts of fields."""
        return [f"{prefix}.{i}" for prefix, _, ids in self.statistics() if prefix != "column_size" for i in ids]

    def statistics(self) -> Iterator[tuple[str, str, tuple[int, ...]]]:
        """Yield the single-field statistics: (column prefix, map that contains them, ascending field ids)."""
        yield "lower", "lower_bounds", _ascending(self.bounds)
        yield "upper", "upper_bounds", _ascending(self.bounds)
        yield "value_count", "value_counts", _ascending(self.counts)
        yield "null_count", "null_value_counts", _ascending(self.counts)
        yield "nan_count", "nan_value_counts", _ascending(self.counts)
        yield "column_size", "column_sizes", _ascending(self.sizes)


PLAN = ManifestColumns(
    (
        "status",
        "snapshot_id",
        "sequence_number",
        "file_sequence_number",
        "content",
        "file_path",
        "file_format",
        "record_count",
        "file_size_in_bytes",
        "sort_order_id",
    )
)
ALL = ManifestColumns(tuple(f.name for f in (*ENTRY_FIELDS, *DATA_FILE_FIELDS) if f.name != "block_size_in_bytes"))


@lru_cache(maxsize=256)
def manifest_program(schema: bytes, partition_spec: bytes, want: ManifestColumns) -> Program:
    """Compile the program for files with this Avro schema, of which a table has few. Raises ValueError."""
    wanted = Wanted(
        values=frozenset(PATHS[name] for name in want.fields),
        inside=frozenset({PARTITION_ID} if want.partition else ()),
        spans=frozenset({(ROOT_ID, DATA_FILE_ID)} if want.data_file else ()),
        keys=tuple((PATHS[name], ids) for _, name, ids in want.statistics() if ids),
    )
    return compile_program(parse_schema(schema, entry_names(partition_spec)), wanted)


def entry_names(partition_spec: bytes) -> dict[tuple[int, str], int]:
    """Return field ids by name, for writers that omit them; those of partition fields come from the file's spec."""
    try:
        fields = json.loads(partition_spec)
        partition = {
            (PARTITION_ID, str(f["name"])): int(f.get("field-id", FIRST_PARTITION_FIELD_ID + position))
            for position, f in enumerate(fields)
        }
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError):
        # Only files without ids need it; if it is wrong, a required field is missing later.
        partition = {}
    return NAMES | partition


def _ascending(ids: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(sorted(set(ids)))
