"""Check that a table's metadata is true: every file is there, and what metadata says of it is so."""
