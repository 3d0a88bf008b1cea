"""icefield demo: a scripted tour of a lake."""
