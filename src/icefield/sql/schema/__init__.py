"""Statements that define tables, views and namespaces: CREATE, ALTER, DROP, branches and tags."""
