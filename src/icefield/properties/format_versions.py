"""The versions of the table format (`format-version`): all, and that of new tables."""

FORMAT_VERSIONS = (1, 2, 3)
FORMAT_VERSION = 2
