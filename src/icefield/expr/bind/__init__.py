"""Filters bound to a schema: field ids and typed values in one normal form."""
