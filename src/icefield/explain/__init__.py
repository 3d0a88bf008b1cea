"""Explain why a scan reads or prunes a file, for people and programs."""
