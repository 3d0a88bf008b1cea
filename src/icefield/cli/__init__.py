"""The command line: the same verbs as the handles. Nobody imports it."""
