"""Which upkeep tables need, and runs that do it: by policies, worst debt first, within a budget."""
