"""SQL on the command line: one statement, a script, or a shell."""
