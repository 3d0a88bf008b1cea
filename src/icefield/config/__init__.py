"""From a target or a name to an open lake: settings, where they come from, and what connects."""
