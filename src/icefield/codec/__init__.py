"""From the model to bytes and back: metadata JSON, Avro manifests and manifest lists as Arrow columns. Pure: no I/O."""
