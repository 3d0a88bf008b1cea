"""Icefield: lakehouse tables in Python, with Spark for the rows."""
