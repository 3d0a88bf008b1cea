"""The table properties of upkeep; `table` lists them with the others."""

from icefield.properties.property import Property, flag, natural, positive

GC_GRACE_MS = Property(
    "icefield.gc.grace-ms",
    natural,
    24 * 3600 * 1000,
    "How long files are kept after the last snapshot that refers to them has expired.",
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
GC_UNDROP_MS = Property(
    "icefield.gc.undrop-ms", natural, 7 * 24 * 3600 * 1000, "How long a table that was dropped can be restored."
)
