"""Caches of decoded metadata: manifests in memory and on disk, manifest lists, metadata files and small plans."""
