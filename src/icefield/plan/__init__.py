"""From a snapshot and a filter to the files that a read must open."""
