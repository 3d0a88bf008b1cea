"""SQL over the tables of a lake: statements are parsed here, queries and expressions are Spark's."""
