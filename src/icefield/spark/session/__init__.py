"""The Spark session: Java, the chosen session, and checks of its Python workers."""
