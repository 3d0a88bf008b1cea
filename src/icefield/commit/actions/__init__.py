"""What can be committed to a table, one action per module."""
