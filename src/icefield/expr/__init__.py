"""What a filter means: text or Python to a tree, bound to a schema, evaluated on statistics, rows, Arrow and Spark."""
