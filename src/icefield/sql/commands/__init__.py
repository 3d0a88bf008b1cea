"""Statements that show something or keep tables in order: SHOW, DESCRIBE, USE, CALL, OPTIMIZE."""
