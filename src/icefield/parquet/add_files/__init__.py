"""Parquet files that another program wrote, described so that they can be added to a table."""
