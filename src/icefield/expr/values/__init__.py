"""SQL values and conditions over columns of a target and a source, evaluated on Arrow data as Spark does it."""
