"""Views on Spark: queries that were checked, and the session settings that must not change their meaning."""
