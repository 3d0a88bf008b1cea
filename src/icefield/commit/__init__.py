"""Changes to tables: actions, what must still hold for each, and the one loop that commits them."""
