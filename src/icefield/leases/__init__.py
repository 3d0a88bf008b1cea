"""Leases of long reads and writes, as objects in the store beside the table."""
