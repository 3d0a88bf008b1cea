"""Spark Columns as filter text, for classic sessions and Spark Connect."""
