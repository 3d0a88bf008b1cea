"""Where the work on rows runs: in this process, or on Spark."""
