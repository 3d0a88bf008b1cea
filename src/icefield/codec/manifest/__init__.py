"""Manifests and manifest lists as Arrow columns."""
