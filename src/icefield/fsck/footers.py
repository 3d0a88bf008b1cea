"""Whether data and delete files have the rows that metadata says, by their footers and deletion vectors."""

import pyarrow as pa
import pyarrow.parquet as pq

from icefield.codec.manifest.schema import PARQUET, PUFFIN
from icefield.codec.puffin.deletion_vector import decode_deletion_vector
from icefield.errors import CorruptFile, IcefieldError
from icefield.fsck.finding import Check, Findings
from icefield.fsck.tree import TreeEntries
from icefield.storage.store import Store

_STEP = 1_000


def check_footers(store: Store, files: TreeEntries, findings: Findings) -> None:
    """Open every file, each of them once; formats other than Parquet and Puffin are left out."""
    for start in range(0, files.num_rows, _STEP):
        for row in files.slice(start, _STEP).to_pylist():
            location, expected = row["file_path"], row["record_count"]
            try:
                match row["file_format"].upper():
                    case word if word == PUFFIN:
                        _read_vector(store, location, row["content_offset"], row["content_size_in_bytes"], expected)
                    case word if word == PARQUET:
                        _check_rows(store, location, expected)
            except CorruptFile as corrupt:
                findings.add(
                    Check.FOOTERS, f"the file {location} is not as described: {corrupt.why}", location=location
                )
            except IcefieldError as error:
                findings.add(Check.FOOTERS, f"the file {location} cannot be read: {error.message}", location=location)


def _check_rows(store: Store, location: str, expected: int) -> None:
    try:
        with store.open_input(location) as source:
            found = pq.read_metadata(source).num_rows
    except (pa.ArrowException, OSError) as error:
        raise CorruptFile(location, f"its footer does not decode: {error}") from error
    if found != expected:
        raise CorruptFile(location, f"it has {found:,} rows, but metadata says {expected:,}")


def _read_vector(store: Store, location: str, offset: int | None, size: int | None, expected: int) -> None:
    if offset is None or size is None:
        return  # reported already
    decode_deletion_vector(store.read_range(location, offset, size), location, cardinality=expected)
