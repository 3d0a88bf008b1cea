"""Partitions of files: as keys, as one struct over all specs, as constant columns."""
