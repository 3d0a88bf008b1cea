"""DataFrames to data files: distribution, order, and the task that writes."""
