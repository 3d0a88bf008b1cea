"""Catalogs: map names to metadata locations, and move them by compare-and-swap."""
