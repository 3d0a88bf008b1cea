"""What a table stores, what of it is needed, and what upkeep would gain."""
