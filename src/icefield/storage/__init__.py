"""Bytes by location: keys are written once, read by range, listed and deleted."""
