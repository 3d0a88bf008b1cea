"""The Spark session: Java, the session that is used, and what its Python workers can do."""
