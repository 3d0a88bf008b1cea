"""The queries of views: parsed, checked and rewritten token by token."""
