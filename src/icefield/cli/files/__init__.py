"""Files of rows that the command line reads: which, in which format, and their rows."""
