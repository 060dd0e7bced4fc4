"""TPC-H through a declared pipeline, compared with plain Spark SQL."""
