"""Engines for work on rows: in this process, or on Spark."""
