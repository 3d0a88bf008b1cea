"""Write data files and delete files, with their metrics."""
