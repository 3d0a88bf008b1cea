"""Avro, by columns: containers, schemas, and the kernels that decode and encode rows."""
