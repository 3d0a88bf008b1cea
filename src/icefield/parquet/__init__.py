"""Rows in Parquet files, through Arrow: written with the statistics that planning needs, read by field id."""
