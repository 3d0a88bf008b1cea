"""How much a compressed file may grow in memory.

A few kilobytes can be made to inflate to gigabytes. What real writers compress does not grow like that: metadata files,
manifests and manifest lists grow 5 to 30 times, and even the most repetitive ones below MAX_GROWTH.
"""

MAX_GROWTH = 200
ALWAYS_BYTES = 64 << 20  # small enough to hold, however it was compressed


def most_inflated(compressed_bytes: int, most_bytes: int) -> int:
    """Return how many bytes a compressed file of a size may inflate to; `most_bytes` at most."""
    return min(most_bytes, max(ALWAYS_BYTES, MAX_GROWTH * compressed_bytes))
