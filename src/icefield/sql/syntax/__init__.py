"""The text of statements: tokens, names, literals, and their places."""
