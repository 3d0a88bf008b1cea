"""Names to metadata locations, moved by one compare-and-swap."""
