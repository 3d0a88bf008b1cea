"""Single values: as bytes in metadata, as JSON, and as Python values of users."""
