"""Metadata tables: the contents of a table's metadata, as rows."""
