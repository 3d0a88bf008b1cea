"""The command line: the same verbs as the handles. No other room imports it."""
