"""Metadata tables: what a table is made of, as rows."""
