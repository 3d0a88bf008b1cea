"""Rows in the forms of other libraries, and reads of a table without naming a scan."""
