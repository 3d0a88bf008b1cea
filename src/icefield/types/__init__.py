"""Types, schemas with field ids, single values, transforms, and their conversion to and from Arrow. No I/O."""
