"""Data files to rows: columns by field id, deleted rows left out."""
