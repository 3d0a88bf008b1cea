"""The catalog in an object store or a directory, without a database: one small record per table."""
