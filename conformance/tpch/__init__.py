"""TPC-H through a declared pipeline, held against the same computed by plain Spark SQL."""
