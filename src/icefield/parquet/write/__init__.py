"""Rows to data files and delete files, with their metrics."""
