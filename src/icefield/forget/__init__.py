"""Delete rows for good: what holds them, the steps that remove it, and the search that shows that nothing is left."""
