"""Compaction: which files to rewrite, and how, without changing rows."""
