"""Views on Spark: checked queries, and the session settings that must not change their meaning."""
