"""TPC-H in SQL++: results and times of the 22 queries, compared with Spark SQL on the same tables."""
