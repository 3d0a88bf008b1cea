"""The snapshot that a commit adds: its manifests, manifest list and summary."""
