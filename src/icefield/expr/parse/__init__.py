"""Filters as users write them: SQL text or Python, as one syntax tree."""
