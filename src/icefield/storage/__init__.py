"""Stores of immutable files by location: written once, read by range, listed and deleted."""
