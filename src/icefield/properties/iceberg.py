"""Properties of Iceberg tables that icefield does not read, each with the reason that is reported when it is set.

The list is that of Iceberg's documentation and of its class TableProperties; `properties.py` has those that are read.
"""

ENCRYPTION_KEY = "encryption.key-id"

_OWN_READER = "Spark's own Parquet reader, or Arrow, reads the files, with settings of its own"
_ORC = "icefield writes Parquet, never ORC"
_DELETE_FILES = "delete files are small, and written with settings of icefield's own"
_PLANNING = "icefield chooses where to plan by the size of the manifests"
_HIVE = "icefield does not use Hive's metastore"
_UNKNOWN_OUTCOME = "how an unknown commit outcome is resolved is not configurable"
_ARROW_WRITER = "Arrow's Parquet writer has no such setting"
_NOTHING_TO_DISTRIBUTE = "what stays of a data file is written by the task that has its deleted positions"

# Stored for other engines.
NO_EFFECT: dict[str, str] = {
    "commit.status-check.num-retries": _UNKNOWN_OUTCOME,
    "commit.status-check.min-wait-ms": _UNKNOWN_OUTCOME,
    "commit.status-check.max-wait-ms": _UNKNOWN_OUTCOME,
    "commit.status-check.total-timeout-ms": _UNKNOWN_OUTCOME,
    "compatibility.snapshot-id-inheritance.enabled": "snapshot ids are always inherited where the format allows it",
    "engine.hive.enabled": _HIVE,
    "engine.hive.lock-enabled": _HIVE,
    "identifier-fields.rely": "query engines would use it as a hint",
    "read.data-planning-mode": _PLANNING,
    "read.delete-planning-mode": _PLANNING,
    "read.orc.vectorization.batch-size": _OWN_READER,
    "read.orc.vectorization.enabled": _OWN_READER,
    "read.parquet.vectorization.batch-size": _OWN_READER,
    "read.parquet.vectorization.enabled": _OWN_READER,
    "read.split.adaptive-size.enabled": "read.split.target-size is taken as it is",
    "read.split.metadata-target-size": "rows of metadata tables are not split",
    "write.avro.compression-level": "manifests are compressed at the codec's own level",
    "write.delete.avro.compression-codec": _DELETE_FILES,
    "write.delete.avro.compression-level": _DELETE_FILES,
    "write.delete.distribution-mode": _NOTHING_TO_DISTRIBUTE,
    "write.delete.orc.block-size-bytes": _ORC,
    "write.delete.orc.compression-codec": _ORC,
    "write.delete.orc.compression-strategy": _ORC,
    "write.delete.orc.stripe-size-bytes": _ORC,
    "write.delete.orc.vectorized.batch-size": _ORC,
    "write.delete.parquet.compression-codec": _DELETE_FILES,
    "write.delete.parquet.compression-level": _DELETE_FILES,
    "write.delete.parquet.dict-size-bytes": _DELETE_FILES,
    "write.delete.parquet.page-row-limit": _DELETE_FILES,
    "write.delete.parquet.page-size-bytes": _DELETE_FILES,
    "write.delete.parquet.page-version": _DELETE_FILES,
    "write.delete.parquet.row-group-check-max-record-count": _DELETE_FILES,
    "write.delete.parquet.row-group-check-min-record-count": _DELETE_FILES,
    "write.delete.parquet.row-group-size-bytes": _DELETE_FILES,
    "write.delete.target-file-size-bytes": _DELETE_FILES,
    "write.manifest.compression-codec": "write.avro.compression-codec decides for manifests",
    "write.manifest.compression-level": "manifests are compressed at the codec's own level",
    "write.orc.block-size-bytes": _ORC,
    "write.orc.bloom.filter.columns": _ORC,
    "write.orc.bloom.filter.fpp": _ORC,
    "write.orc.compression-codec": _ORC,
    "write.orc.compression-strategy": _ORC,
    "write.orc.stripe-size-bytes": _ORC,
    "write.orc.vectorized.batch-size": _ORC,
    "write.parquet.bloom-filter-adaptive-enabled": "Bloom filters always have the smallest size that fits",
    "write.parquet.row-group-check-max-record-count": _ARROW_WRITER,
    "write.parquet.row-group-check-min-record-count": _ARROW_WRITER,
    "write.parquet.row-group-size-track-uncompressed": _ARROW_WRITER,
    "write.parquet.shred-variants": "icefield does not write variants",
    "write.parquet.variant-inference-buffer-size": "icefield does not write variants",
    "write.spark.accept-any-schema": "Spark never sees the table's schema before icefield checks the rows",
    "write.spark.auto-schema-evolution.enabled": "give merge_schema=True to a write instead",
    "write.spark.fanout.enabled": "a writing task always has a file open for every partition",
    "write.summary.partition-limit": "snapshot summaries have totals only; see inspect('partitions')",
    "write.upsert.enabled": "it is a setting of Flink; use the verb upsert",
    "write.wap.enabled": "write to a branch and publish it instead",
}
NO_EFFECT_OF_COLUMNS: dict[str, str] = {
    "write.parquet.stats-enabled.column.": "manifests take their bounds from the statistics of every column",
}

# What would not happen, although the property says so, and what to do instead.
REFUSED: dict[str, tuple[str, str]] = {
    ENCRYPTION_KEY: ("icefield does not encrypt files", "Leave it out, or write with an engine that encrypts"),
    "encryption.data-key-length": ("icefield does not encrypt files", "Leave it out"),
    "write.location-provider.impl": (
        "it names a Java class, and icefield runs none",
        "Set write.data.path or write.object-storage.enabled",
    ),
    "write.object-storage.path": ("Iceberg no longer has it", "Set write.data.path"),
    "write.folder-storage.path": ("Iceberg no longer has it", "Set write.data.path"),
}

# What a table says of itself, so that nobody may say otherwise.
RESERVED = frozenset(
    {
        "uuid",
        "snapshot-count",
        "current-snapshot-id",
        "current-snapshot-summary",
        "current-snapshot-timestamp-ms",
        "current-schema",
        "default-partition-spec",
        "default-sort-order",
    }
)

# Read by modules that need more than their text, or only shown to people.
USED_ELSEWHERE = frozenset({"comment", "schema.name-mapping.default"})
