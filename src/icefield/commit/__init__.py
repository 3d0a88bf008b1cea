"""Changes to tables: actions, their validation, and the one loop that commits them."""
