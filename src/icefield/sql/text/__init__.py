"""The text of statements: its constants, the relations that it names, and how it is rewritten."""
