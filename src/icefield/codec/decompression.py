"""How large a compressed file may become in memory.

A file of a few kilobytes can be crafted to inflate to gigabytes. Real files do not: metadata files, manifests and
manifest lists inflate by a factor of 5 to 30, and even the most repetitive ones stay below MAX_GROWTH.
"""

MAX_GROWTH = 200
ALWAYS_BYTES = 64 << 20  # small enough to be allowed at any ratio


def most_inflated(compressed_bytes: int, most_bytes: int) -> int:
    """Return how many bytes a compressed file of the given size may inflate to, at most `most_bytes`."""
    return min(most_bytes, max(ALWAYS_BYTES, MAX_GROWTH * compressed_bytes))
