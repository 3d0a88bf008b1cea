"""Commands on the history of a table."""
