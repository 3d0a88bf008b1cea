"""Conflict validation: what must still be true when a change is committed on a newer version."""
