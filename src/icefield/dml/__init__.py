"""The verbs that change a table: write rows, turn files and steps into actions, commit the actions."""
