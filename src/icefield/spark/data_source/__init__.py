"""The format "icefield" of spark.read and df.write."""
