"""Metadata of tables and views, schemas, updates and name mappings as JSON."""
