"""The actions that can be committed to a table, one per module."""
