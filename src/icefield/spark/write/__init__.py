"""DataFrames to data files: distribution, order, and the writing task."""
