"""The handles of a table: the table itself, scans, changes, metadata tables, history, transactions."""
