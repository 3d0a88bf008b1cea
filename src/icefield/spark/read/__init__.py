"""Planned files to DataFrames: through Spark's Parquet reader where it gives the right rows, else by tasks."""
