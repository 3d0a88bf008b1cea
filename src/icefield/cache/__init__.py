"""What was decoded already: manifests, in memory and on disk, manifest lists, metadata files and small plans."""
