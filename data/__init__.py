"""Task families and data sets, made into the parquet files that training reads."""
