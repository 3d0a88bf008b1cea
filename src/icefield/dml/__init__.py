"""The verbs that change a table: rows are written, files and steps become actions, actions become a commit."""
