"""Procedures of CALL: those of Iceberg's Spark runtime, by its names, arguments and results, and our own."""
