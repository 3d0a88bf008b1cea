"""Every table property that icefield reads, once: key, type, default, one line of doc.

Keys and meanings are Iceberg's where Iceberg has them. Where a default differs from Iceberg's, the doc says why.
Raises InvalidInput for a value that does not parse.
"""

from icefield.properties.compaction import (
    COMPACTION_COMMIT_BYTES,
    COMPACTION_DELETE_RATIO,
    COMPACTION_MAX_FILE_BYTES,
    COMPACTION_MIN_FILE_BYTES,
    COMPACTION_MIN_INPUT_FILES,
)
from icefield.properties.property import (
    ColumnProperty,
    Property,
    flag,
    metrics_mode,
    natural,
    one_of,
    positive,
    probability,
)
from icefield.properties.upkeep import UPKEEP_PROPERTIES

METRICS_COLUMN_PREFIX = "write.metadata.metrics.column."
FORMAT_VERSION_KEY = "format-version"  # other engines take the version from here, and store it elsewhere


COMMIT_RETRIES = Property(
    "commit.retry.num-retries",
    natural,
    100,
    "How often a commit is retried after a conflict. (Iceberg: 4, which loses appends under contention.)",
)
COMMIT_TOKENS_KEPT = Property(
    "icefield.idempotency-keys.kept",
    natural,
    100,
    "How many of the newest plain keys of each branch are remembered after their snapshots have expired.",
)
COMMIT_RETRY_MIN_WAIT_MS = Property(
    "commit.retry.min-wait-ms", positive, 10, "The upper bound of the first random wait."
)
COMMIT_RETRY_MAX_WAIT_MS = Property("commit.retry.max-wait-ms", positive, 2_000, "The upper bound of later waits.")
COMMIT_RETRY_TOTAL_MS = Property(
    "commit.retry.total-timeout-ms", positive, 1_800_000, "How long a commit is retried in total."
)
PREVIOUS_VERSIONS_MAX = Property(
    "write.metadata.previous-versions-max", positive, 100, "How many old metadata files the metadata log keeps."
)
METADATA_DELETE_AFTER_COMMIT = Property(
    "write.metadata.delete-after-commit.enabled",
    flag,
    True,
    "Whether metadata files that left the metadata log are removed, after a grace period. (Iceberg: false, which "
    "leaves 0.4 GB after 1,000 commits.)",
)
METADATA_CODEC: Property[str | None] = Property(
    "write.metadata.compression-codec",
    one_of("none", "gzip"),
    None,
    "The compression of metadata files. If it is not set: gzip for those of 16 KB and more. (Iceberg: none, which "
    "makes each commit and each first read of a table with 1,000 snapshots 0.6 MB larger.)",
)
DATA_PATH: Property[str | None] = Property(
    "write.data.path", str, None, "Where new data and delete files go; `data` in the table's location if it is not set."
)
METADATA_PATH: Property[str | None] = Property(
    "write.metadata.path",
    str,
    None,
    "Where new metadata files go; `metadata` in the table's location if it is not set.",
)
OBJECT_STORAGE = Property(
    "write.object-storage.enabled",
    flag,
    False,
    "Spread new files over hashed directories, so that an object store does not throttle one prefix.",
)
OBJECT_STORAGE_PARTITIONED = Property(
    "write.object-storage.partitioned-paths", flag, True, "Whether hashed paths include the partition."
)
FILE_FORMAT = Property(
    "write.format.default",
    one_of("parquet"),
    "parquet",
    "Data files are written as Parquet. Other formats are refused.",
)
DELETE_FILE_FORMAT = Property(
    "write.delete.format.default",
    one_of("parquet"),
    "parquet",
    "Position deletes are written as Parquet, in format version 3 as deletion vectors. Other formats are refused.",
)
BY_FILE, BY_PARTITION = "file", "partition"
DELETE_GRANULARITY = Property(
    "write.delete.granularity",
    one_of(BY_FILE, BY_PARTITION),
    BY_FILE,
    "What a position delete file of format version 2 holds: the deletes of one data file, so that a reader opens only "
    "what it needs, or of all that a task changes in a partition, which makes fewer files. (Iceberg: partition.)",
)
GC_ENABLED = Property(
    "gc.enabled",
    flag,
    True,
    "Whether snapshots may expire and files may be deleted; false for a table whose files other tables refer to.",
)
TARGET_FILE_SIZE_BYTES = Property(
    "write.target-file-size-bytes", positive, 512 * 1024 * 1024, "Data files are closed at about this size."
)
PARQUET_CODEC = Property(
    "write.parquet.compression-codec",
    one_of("zstd", "snappy", "gzip", "lz4", "lz4_raw", "brotli", "uncompressed"),
    "zstd",
    "The compression of data pages.",
)
PARQUET_ROW_GROUP_BYTES = Property(
    "write.parquet.row-group-size-bytes", positive, 128 * 1024 * 1024, "Row groups are closed at about this size."
)
PARQUET_LEVEL: Property[int | None] = Property(
    "write.parquet.compression-level", int, None, "The compression level; by default the codec's own."
)
PARQUET_PAGE_BYTES = Property(
    "write.parquet.page-size-bytes", positive, 1024 * 1024, "Data pages are closed at about this size."
)
PARQUET_PAGE_ROWS = Property("write.parquet.page-row-limit", positive, 20_000, "The maximum rows of a data page.")
PARQUET_PAGE_VERSION = Property("write.parquet.page-version", one_of("v1", "v2"), "v1", "The version of data pages.")
PARQUET_DICTIONARY_BYTES = Property(
    "write.parquet.dict-size-bytes",
    positive,
    2 * 1024 * 1024,
    "The maximum size of a dictionary; further values are plainly encoded.",
)
PARQUET_DICTIONARY: ColumnProperty[bool | None] = ColumnProperty(
    "write.parquet.dict-encoding-enabled.column.",
    flag,
    None,
    "Whether a column is dictionary-encoded; if it is not set, where values repeat.",
)
BLOOM_FILTER_MAX_BYTES = Property(
    "write.parquet.bloom-filter-max-bytes", positive, 1024 * 1024, "The maximum size of a Bloom filter."
)
BLOOM_FILTER = ColumnProperty(
    "write.parquet.bloom-filter-enabled.column.", flag, False, "Whether a column gets Bloom filters."
)
BLOOM_FILTER_FPP = ColumnProperty(
    "write.parquet.bloom-filter-fpp.column.",
    probability,
    0.01,
    "The false positive probability of a column's Bloom filters.",
)
BLOOM_FILTER_NDV: ColumnProperty[int | None] = ColumnProperty(
    "write.parquet.bloom-filter-ndv.column.",
    positive,
    None,
    "The number of distinct values of a column in a row group; if it is not set, the number of its rows.",
)
DISTRIBUTE_NONE, DISTRIBUTE_HASH, DISTRIBUTE_RANGE = "none", "hash", "range"
DISTRIBUTION_MODE: Property[str | None] = Property(
    "write.distribution-mode",
    one_of(DISTRIBUTE_NONE, DISTRIBUTE_HASH, DISTRIBUTE_RANGE),
    None,
    "How Spark distributes rows before they are written: none, hash (by partition) or range (by partition and "
    "order). If it is not set: hash where the table is partitioned, else range where it is ordered, else none.",
)
UPDATE_DISTRIBUTION = Property(
    "write.update.distribution-mode",
    one_of(DISTRIBUTE_NONE, DISTRIBUTE_HASH, DISTRIBUTE_RANGE),
    DISTRIBUTE_HASH,
    "How Spark distributes the new rows of an update: none, hash (by partition; large ones over several tasks) or "
    "range (by partition and order).",
)
MERGE_DISTRIBUTION = Property(
    "write.merge.distribution-mode",
    one_of(DISTRIBUTE_NONE, DISTRIBUTE_HASH, DISTRIBUTE_RANGE),
    DISTRIBUTE_HASH,
    "The same for the new rows of merges and upserts.",
)
TASK_BYTES: Property[int | None] = Property(
    "write.spark.advisory-partition-size-bytes",
    positive,
    None,
    "How much one task writes after rows were distributed; by default enough to fill a file.",
)
MANIFEST_CODEC = Property(
    "write.avro.compression-codec",
    # Iceberg's names, and those of Avro that PyIceberg accepts too.
    one_of("gzip", "uncompressed", "snappy", "zstd", "deflate", "null", "zstandard", "bzip2"),
    "gzip",
    "The compression of manifests and manifest lists; gzip is what every engine reads.",
)
METRICS_DEFAULT = Property(
    "write.metadata.metrics.default",
    metrics_mode,
    "truncate(16)",
    "The column statistics that are kept: none, counts, truncate(n) or full.",
)

MAX_INFERRED_COLUMNS: Property[int | None] = Property(
    "write.metadata.metrics.max-inferred-column-defaults",
    natural,
    None,
    "How many columns get statistics if write.metadata.metrics.default is not set, the table's own columns before "
    "those inside structs. (Iceberg: 100, which leaves the columns of wide tables without pruning.)",
)
METRICS_OF_COLUMN = ColumnProperty(METRICS_COLUMN_PREFIX, metrics_mode, METRICS_DEFAULT.default, METRICS_DEFAULT.doc)

MANIFEST_MERGE = Property("commit.manifest-merge.enabled", flag, True, "Merge small manifests while appending.")
MANIFEST_MIN_COUNT_TO_MERGE = Property(
    "commit.manifest.min-count-to-merge", positive, 100, "The least number of manifests to merge."
)
MANIFEST_TARGET_SIZE_BYTES = Property(
    "commit.manifest.target-size-bytes", positive, 8 * 1024 * 1024, "The target size of merged manifests."
)
MAX_SNAPSHOT_AGE_MS = Property(
    "history.expire.max-snapshot-age-ms", positive, 5 * 24 * 3600 * 1000, "The age at which snapshots expire."
)
MIN_SNAPSHOTS_TO_KEEP = Property(
    "history.expire.min-snapshots-to-keep", positive, 1, "How many snapshots of a branch never expire."
)
MAX_SNAPSHOTS: Property[int | None] = Property(
    "icefield.history.max-snapshots",
    positive,
    None,
    "How many snapshots a commit leaves to each branch; it removes older ones from the metadata, which stays small. "
    "Their files are then orphan files. If it is not set, snapshots are removed by expiry alone.",
)
PROTECTED_REFS: Property[str | None] = Property(
    "icefield.history.protected-refs", str, None, "Branches and tags that only writes and publishes move, as a, b."
)
MAX_REF_AGE_MS = Property(
    "history.expire.max-ref-age-ms", positive, (1 << 63) - 1, "The age at which a branch or tag expires."
)
SPLIT_TARGET_SIZE_BYTES = Property(
    "read.split.target-size", positive, 128 * 1024 * 1024, "The target size of one task."
)
SPLIT_LOOKBACK = Property(
    "read.split.planning-lookback", positive, 10, "How many tasks are filled at once; more fills them better."
)
SPLIT_OPEN_FILE_COST_BYTES = Property(
    "read.split.open-file-cost", natural, 4 * 1024 * 1024, "The cost of opening a file, in bytes."
)
COPY_ON_WRITE, MERGE_ON_READ, AUTO_MODE = "copy-on-write", "merge-on-read", "auto"
_MODES = (COPY_ON_WRITE, MERGE_ON_READ)
DELETE_MODE = Property(
    "write.delete.mode",
    one_of(*_MODES),
    COPY_ON_WRITE,
    "How rows are deleted: copy-on-write rewrites data files, merge-on-read writes delete files.",
)
UPDATE_MODE = Property("write.update.mode", one_of(*_MODES), COPY_ON_WRITE, "The same for the old rows of an update.")
MERGE_MODE = Property("write.merge.mode", one_of(*_MODES), COPY_ON_WRITE, "The same for merges and upserts.")
# Iceberg Java refuses to write to a table whose write.*.mode has any other value.
OWN_DELETE_MODE: Property[str | None] = Property(
    "icefield.delete.mode",
    one_of(*_MODES, AUTO_MODE),
    None,
    "Overrides write.delete.mode for Icefield. auto decides for each data file: a small one, or one that loses many of "
    "its rows, is rewritten, others get delete files.",
)
OWN_UPDATE_MODE: Property[str | None] = Property(
    "icefield.update.mode", one_of(*_MODES, AUTO_MODE), None, "The same for write.update.mode."
)
OWN_MERGE_MODE: Property[str | None] = Property(
    "icefield.merge.mode", one_of(*_MODES, AUTO_MODE), None, "The same for write.merge.mode."
)
SERIALIZABLE, SNAPSHOT = "serializable", "snapshot"
DELETE_ISOLATION = Property(
    "write.delete.isolation-level",
    one_of(SERIALIZABLE, SNAPSHOT),
    SERIALIZABLE,
    "serializable: a delete fails if rows that it would match were added concurrently; snapshot: those rows stay.",
)
OVERWRITE_ISOLATION = Property(
    "write.overwrite.isolation-level",
    one_of(SERIALIZABLE, SNAPSHOT),
    SERIALIZABLE,
    "The same for overwrites of the rows that match a filter.",
)
UPDATE_ISOLATION = Property(
    "write.update.isolation-level",
    one_of(SERIALIZABLE, SNAPSHOT),
    SERIALIZABLE,
    "The same for updates.",
)
MERGE_ISOLATION = Property(
    "write.merge.isolation-level",
    one_of(SERIALIZABLE, SNAPSHOT),
    SERIALIZABLE,
    "The same for merges and upserts; the keys that they look for before they insert count as read under either.",
)

TABLE_PROPERTIES: tuple[Property[int] | Property[str] | Property[bool] | Property[float], ...] = (
    COMMIT_RETRIES,
    COMMIT_RETRY_MIN_WAIT_MS,
    COMMIT_RETRY_MAX_WAIT_MS,
    COMMIT_RETRY_TOTAL_MS,
    COMMIT_TOKENS_KEPT,
    PREVIOUS_VERSIONS_MAX,
    METADATA_DELETE_AFTER_COMMIT,
    OBJECT_STORAGE,
    OBJECT_STORAGE_PARTITIONED,
    FILE_FORMAT,
    DELETE_FILE_FORMAT,
    DELETE_GRANULARITY,
    GC_ENABLED,
    TARGET_FILE_SIZE_BYTES,
    PARQUET_CODEC,
    PARQUET_ROW_GROUP_BYTES,
    PARQUET_PAGE_BYTES,
    PARQUET_PAGE_ROWS,
    PARQUET_PAGE_VERSION,
    PARQUET_DICTIONARY_BYTES,
    BLOOM_FILTER_MAX_BYTES,
    MANIFEST_CODEC,
    METRICS_DEFAULT,
    DELETE_ISOLATION,
    OVERWRITE_ISOLATION,
    MANIFEST_MERGE,
    MANIFEST_MIN_COUNT_TO_MERGE,
    MANIFEST_TARGET_SIZE_BYTES,
    MAX_SNAPSHOT_AGE_MS,
    MIN_SNAPSHOTS_TO_KEEP,
    MAX_REF_AGE_MS,
    SPLIT_TARGET_SIZE_BYTES,
    SPLIT_LOOKBACK,
    SPLIT_OPEN_FILE_COST_BYTES,
    DELETE_MODE,
    UPDATE_MODE,
    MERGE_MODE,
    UPDATE_ISOLATION,
    MERGE_ISOLATION,
    UPDATE_DISTRIBUTION,
    MERGE_DISTRIBUTION,
    COMPACTION_MIN_INPUT_FILES,
    COMPACTION_DELETE_RATIO,
    COMPACTION_COMMIT_BYTES,
    *UPKEEP_PROPERTIES,
)

# Those whose absence means something that no value says.
OPTIONAL_PROPERTIES: tuple[Property[int | None] | Property[str | None], ...] = (
    PROTECTED_REFS,
    PARQUET_LEVEL,
    DISTRIBUTION_MODE,
    TASK_BYTES,
    METADATA_CODEC,
    MAX_SNAPSHOTS,
    DATA_PATH,
    METADATA_PATH,
    MAX_INFERRED_COLUMNS,
    OWN_DELETE_MODE,
    OWN_UPDATE_MODE,
    OWN_MERGE_MODE,
    COMPACTION_MIN_FILE_BYTES,
    COMPACTION_MAX_FILE_BYTES,
)
COLUMN_PROPERTIES: tuple[
    ColumnProperty[bool]
    | ColumnProperty[str]
    | ColumnProperty[float]
    | ColumnProperty[int | None]
    | ColumnProperty[bool | None],
    ...,
] = (PARQUET_DICTIONARY, BLOOM_FILTER, BLOOM_FILTER_FPP, BLOOM_FILTER_NDV, METRICS_OF_COLUMN)

# What a single write may decide otherwise than its table; column properties too.
WRITE_OPTIONS = frozenset(
    known.key
    for known in (
        TARGET_FILE_SIZE_BYTES,
        PARQUET_CODEC,
        PARQUET_LEVEL,
        PARQUET_ROW_GROUP_BYTES,
        PARQUET_PAGE_BYTES,
        PARQUET_PAGE_ROWS,
        PARQUET_PAGE_VERSION,
        PARQUET_DICTIONARY_BYTES,
        BLOOM_FILTER_MAX_BYTES,
        DISTRIBUTION_MODE,
        TASK_BYTES,
        METRICS_DEFAULT,
    )
)
# What Iceberg's Spark writer calls some of them.
SHORT_OPTIONS = {
    "target-file-size-bytes": TARGET_FILE_SIZE_BYTES.key,
    "compression-codec": PARQUET_CODEC.key,
    "compression-level": PARQUET_LEVEL.key,
    "distribution-mode": DISTRIBUTION_MODE.key,
    "advisory-partition-size": TASK_BYTES.key,
}
