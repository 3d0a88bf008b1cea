"""Bound expressions rendered for Arrow, Spark SQL and display, and evaluated on single rows."""
