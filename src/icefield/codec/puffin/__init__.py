"""Puffin files, and the deletion vectors in them."""
