"""Filters: parsed from SQL or Python, bound to a schema, evaluated on statistics and rows, rendered for engines."""
