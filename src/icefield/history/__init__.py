"""The history of tables as something to work with: compare versions, publish branches, undo changes."""
