"""Pictures of tables: the metadata tree, and HTML pages."""
