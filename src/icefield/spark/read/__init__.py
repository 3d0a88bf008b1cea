"""Planned files to DataFrames: with Spark's Parquet reader if it returns the right rows, else with Python tasks."""
