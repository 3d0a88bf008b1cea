"""Data files in Parquet, through Arrow: written with the statistics that planning needs, read by field id."""
