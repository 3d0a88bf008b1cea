"""The commands, each a thin layer over the handles."""
