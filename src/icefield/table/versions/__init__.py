"""The versions of a table: its snapshots, branches and tags."""
