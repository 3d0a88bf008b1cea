"""Commands that write rows of files to tables."""
