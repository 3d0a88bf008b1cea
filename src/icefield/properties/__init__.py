"""Table properties: those that icefield reads, those of Iceberg that it does not, and their checks."""
