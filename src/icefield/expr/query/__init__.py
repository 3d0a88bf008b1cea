"""The queries of views: parsed, checked and written again from their tokens."""
