"""The settings of a write, for the tasks that write data files."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from icefield.errors import Unsupported, warn_caller
from icefield.model.metadata import TableMetadata
from icefield.model.partition import PartitionSpec
from icefield.model.sort_order import UNSORTED, SortOrder
from icefield.parquet.file_schema import file_schema, stored_fields
from icefield.parquet.metrics import NO_METRICS, MetricsMode, metrics_modes
from icefield.parquet.write.file_layout import FileLayout, file_layout
from icefield.parquet.write.options import ParquetOptions, parquet_options
from icefield.parquet.write.row_check import RowCheck
from icefield.properties.check import with_options
from icefield.properties.iceberg import ENCRYPTION_KEY
from icefield.properties.table import (
    BY_PARTITION,
    DELETE_GRANULARITY,
    DISTRIBUTE_HASH,
    DISTRIBUTE_NONE,
    DISTRIBUTE_RANGE,
    DISTRIBUTION_MODE,
    FILE_FORMAT,
    TARGET_FILE_SIZE_BYTES,
    TASK_BYTES,
)
from icefield.types.metadata_columns import LINEAGE, with_free_names
from icefield.types.schema import Schema
from icefield.types.transforms import Void

MOST_PLANS = 64


@dataclass(frozen=True)
class WritePlan:
    """The settings of a write; immutable and picklable.

    schema: the columns of new data files; for delete files, those that data files of the table have. distribution: how
    rows are distributed over tasks. task_bytes: about how many bytes of rows a task then gets. order: the sort order
    for rows; a file whose rows have it records it. check: the filter that new rows must match; moved rows are not new.
    deletes_by_partition: whether position deletes of several data files of a partition share a file.
    """

    schema: Schema
    spec: PartitionSpec
    layout: FileLayout
    write_id: str
    target_file_size_bytes: int
    parquet: ParquetOptions
    modes: Mapping[int, MetricsMode]
    distribution: str = DISTRIBUTE_NONE
    task_bytes: int | None = None
    order: SortOrder = UNSORTED
    check: RowCheck | None = None
    deletes_by_partition: bool = False


_plans: dict[tuple[object, ...], WritePlan] = {}  # most writes to a table have the settings of the previous one


def plan_write(
    metadata: TableMetadata, write_id: str, *, moves_rows: bool = False, options: Mapping[str, str] | None = None
) -> WritePlan:
    """Return the settings for new data files: the options of this write, then those of the table.

    moves_rows: whether existing rows of the table are among those to write, so that their lineage is written too if the
    table has row lineage. (spec: Row lineage assignment)
    """
    _check_promises(metadata.properties)
    if options:
        return replace(_plan_write(metadata, options, moves_rows=moves_rows), write_id=write_id)
    known = _cached(metadata, moves_rows, lambda: _plan_write(metadata, {}, moves_rows=moves_rows))
    return replace(known, write_id=write_id)


def plan_deletes(metadata: TableMetadata, write_id: str) -> WritePlan:
    """Return the settings for new delete files, also of a table whose rows cannot be written."""
    _check_promises(metadata.properties)
    stored = replace(metadata.schema, fields=stored_fields(metadata.schema))
    known = _cached(metadata, None, lambda: _plan(metadata, metadata.properties, stored))
    return replace(known, write_id=write_id)


def _cached(metadata: TableMetadata, kind: object, make: Callable[[], WritePlan]) -> WritePlan:
    own = metadata.schema, metadata.spec, metadata.sort_order, metadata.location, metadata.has_row_ids
    key = (*own, frozenset(metadata.properties.items()), kind)
    known = _plans.get(key)
    if known is None:
        if len(_plans) >= MOST_PLANS:
            _plans.clear()
        known = _plans[key] = make()
    return known


def _plan_write(metadata: TableMetadata, options: Mapping[str, str], *, moves_rows: bool) -> WritePlan:
    properties = with_options(metadata.properties, options, [leaf.dotted for leaf in metadata.schema.leaves])
    plan = _plan(metadata, properties, file_schema(metadata.schema))
    with_lineage = moves_rows and metadata.has_row_ids
    return replace(plan, schema=with_free_names(plan.schema, LINEAGE)[0]) if with_lineage else plan


def _plan(metadata: TableMetadata, properties: Mapping[str, str], stored: Schema) -> WritePlan:
    modes = metrics_modes(metadata.schema, properties) | {f.field_id: NO_METRICS for f in LINEAGE}
    return WritePlan(
        schema=stored,
        spec=metadata.spec,
        layout=file_layout(metadata),
        write_id="",
        target_file_size_bytes=TARGET_FILE_SIZE_BYTES.read(properties),
        parquet=parquet_options(stored, properties),
        modes=modes,
        distribution=_distribution(metadata, properties),
        task_bytes=TASK_BYTES.read(properties),
        deletes_by_partition=DELETE_GRANULARITY.read(properties) == BY_PARTITION,
    )


def _check_promises(properties: Mapping[str, str]) -> None:
    """Refuse to write unencrypted files to an encrypted table, and warn of a format that cannot be written."""
    if ENCRYPTION_KEY in properties:
        raise Unsupported(
            f"cannot write: the table is encrypted ({ENCRYPTION_KEY}), and icefield cannot encrypt",
            hint="Write with an engine that encrypts",
        )
    wanted = properties.get(FILE_FORMAT.key, FILE_FORMAT.default)
    if wanted.lower() != FILE_FORMAT.default:
        warn_caller(
            f"the table asks for data files in {wanted} ({FILE_FORMAT.key}); icefield writes {FILE_FORMAT.default}"
        )


def _distribution(metadata: TableMetadata, properties: Mapping[str, str]) -> str:
    """Return how rows are distributed; a mode without partitions or a sort order to use is `none`."""
    is_partitioned = any(not isinstance(part.transform, Void) for part in metadata.spec.fields)
    is_ordered = not metadata.sort_order.is_unsorted
    usual = DISTRIBUTE_HASH if is_partitioned else DISTRIBUTE_RANGE
    mode = DISTRIBUTION_MODE.read(properties) or usual
    has_keys = is_partitioned or (mode == DISTRIBUTE_RANGE and is_ordered)
    return mode if has_keys else DISTRIBUTE_NONE
