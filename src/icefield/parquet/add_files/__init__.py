"""Parquet files of other writers, described so that they can be added to a table."""
