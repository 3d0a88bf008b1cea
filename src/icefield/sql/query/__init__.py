"""Queries: which tables they read, at which versions, and which of their files."""
