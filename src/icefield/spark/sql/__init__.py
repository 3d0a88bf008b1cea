"""SQL statements on Spark: queries over DataFrames, constants, plans, and Spark's errors with their positions."""
