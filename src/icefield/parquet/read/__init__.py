"""Read the rows of data files: columns by field id, without deleted rows."""
