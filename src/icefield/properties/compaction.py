"""The table properties of compaction; `table` lists them with the others."""

from icefield.properties.property import Property, at_least_two, positive, share

COMPACTION_MIN_INPUT_FILES = Property(
    "icefield.compaction.min-input-files",
    at_least_two,
    8,
    "How many small files of about one size are compacted together. Fewer means fewer files, and more rewriting.",
)
COMPACTION_MIN_FILE_BYTES: Property[int | None] = Property(
    "icefield.compaction.min-file-size-bytes",
    positive,
    None,
    "Smaller data files are compacted; if it is not set, those below 3/4 of the target size.",
)
COMPACTION_MAX_FILE_BYTES: Property[int | None] = Property(
    "icefield.compaction.max-file-size-bytes",
    positive,
    None,
    "Larger data files are split by compaction; if it is not set, those above 9/5 of the target size.",
)
COMPACTION_DELETE_RATIO = Property(
    "icefield.compaction.delete-ratio",
    share,
    0.3,
    "The share of a data file's rows with deletes from which on compaction rewrites it; 0 for any delete.",
)
COMPACTION_COMMIT_BYTES = Property(
    "icefield.compaction.commit-size-bytes",
    positive,
    8 * 1024 * 1024 * 1024,
    "About how much data compaction rewrites before it commits; what is committed need not be done again.",
)
