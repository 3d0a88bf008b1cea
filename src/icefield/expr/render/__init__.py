"""Bound expressions for those who run them: Arrow, Spark SQL, single rows, people."""
