"""What SQL statements ask of Spark: to run a text over DataFrames, and to say what a query reads."""
