"""Hand a commit to the catalog: by writing metadata and moving the pointer, or through a REST server."""
