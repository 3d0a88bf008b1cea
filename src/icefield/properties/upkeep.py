"""The table properties of upkeep; `table` lists them with the others."""

from icefield.properties.property import Property, flag, natural, positive

GC_GRACE_MS = Property(
    "icefield.gc.grace-ms",
    natural,
    24 * 3600 * 1000,
    "How long files are kept after the last snapshot that refers to them has expired.",
)
GC_METADATA_GRACE_MS = Property(
    "icefield.gc.metadata-grace-ms",
    natural,
    3600 * 1000,
    "How long metadata files are kept after they left the metadata log, if the grace period is not shorter.",
)
GC_FOREIGN_READERS = Property(
    "icefield.gc.foreign-readers", flag, True, "Whether other engines, which take no leases, read the table."
)
GC_ORPHAN_AGE_MS = Property(
    "icefield.gc.orphan-age-ms",
    natural,
    3 * 24 * 3600 * 1000,
    "The least age of a file that no snapshot refers to before it is removed; it protects writers without a lease.",
)
GC_LEASE_TTL_MS = Property(
    "icefield.gc.lease-ttl-ms", positive, 10 * 60 * 1000, "How long a lease protects files after its last renewal."
)
GC_AUDIT_RETENTION_MS = Property(
    "icefield.gc.audit-retention-ms",
    natural,
    90 * 24 * 3600 * 1000,
    "How long the records of deleted files are kept.",
)
GC_UNDROP_MS = Property(
    "icefield.gc.undrop-ms", natural, 7 * 24 * 3600 * 1000, "How long a table that was dropped can be restored."
)

UPKEEP = Property("icefield.upkeep.enabled", flag, True, "Whether runs of upkeep work on the table.")
UPKEEP_CONVERT_DELETES = Property(
    "icefield.upkeep.convert-deletes.enabled", flag, True, "Whether upkeep converts equality deletes."
)
UPKEEP_COMPACT = Property("icefield.upkeep.compact.enabled", flag, True, "Whether upkeep compacts the table.")
UPKEEP_REWRITE_DELETES = Property(
    "icefield.upkeep.rewrite-deletes.enabled", flag, True, "Whether upkeep rewrites position deletes."
)
UPKEEP_REWRITE_MANIFESTS = Property(
    "icefield.upkeep.rewrite-manifests.enabled", flag, True, "Whether upkeep rewrites manifests."
)
UPKEEP_MIN_MANIFESTS = Property(
    "icefield.upkeep.rewrite-manifests.min-manifests",
    positive,
    16,
    "How many manifests that are too small, too large, span too many partitions or have deleted entries make it due.",
)
UPKEEP_EXPIRE = Property(
    "icefield.upkeep.expire.enabled", flag, True, "Whether upkeep expires snapshots, as `history.expire.*` says."
)
UPKEEP_ORPHANS = Property("icefield.upkeep.orphans.enabled", flag, True, "Whether upkeep looks for orphan files.")
UPKEEP_ORPHANS_INTERVAL_MS = Property(
    "icefield.upkeep.orphans.interval-ms",
    positive,
    7 * 24 * 3600 * 1000,
    "How long after one search for orphan files the next is due; a search lists the table's directories.",
)
UPKEEP_SWEEP = Property(
    "icefield.upkeep.sweep.enabled", flag, True, "Whether upkeep deletes marked files whose grace period is over."
)
UPKEEP_INLINE = Property(
    "icefield.upkeep.inline.enabled",
    flag,
    False,
    "Whether writers compact the newest small files after their commits.",
)
UPKEEP_INLINE_BYTES = Property(
    "icefield.upkeep.inline.max-bytes",
    positive,
    64 * 1024 * 1024,
    "How many bytes one compaction after a commit rewrites at most.",
)

UPKEEP_PROPERTIES: tuple[Property[int] | Property[bool], ...] = (
    GC_GRACE_MS,
    GC_METADATA_GRACE_MS,
    GC_FOREIGN_READERS,
    GC_ORPHAN_AGE_MS,
    GC_LEASE_TTL_MS,
    GC_AUDIT_RETENTION_MS,
    GC_UNDROP_MS,
    UPKEEP,
    UPKEEP_CONVERT_DELETES,
    UPKEEP_COMPACT,
    UPKEEP_REWRITE_DELETES,
    UPKEEP_REWRITE_MANIFESTS,
    UPKEEP_MIN_MANIFESTS,
    UPKEEP_EXPIRE,
    UPKEEP_ORPHANS,
    UPKEEP_ORPHANS_INTERVAL_MS,
    UPKEEP_SWEEP,
    UPKEEP_INLINE,
    UPKEEP_INLINE_BYTES,
)
