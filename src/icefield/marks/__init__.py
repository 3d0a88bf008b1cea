"""Lists of files: marks, of what a sweep is to delete, and audits, of what it deletes."""
