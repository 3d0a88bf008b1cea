"""Load tables and views and commit changes to them: through the pointer of a catalog, or through a REST server."""
