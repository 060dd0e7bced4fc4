"""TPC-H in SQL++: the 22 queries against what Spark SQL gives on the same tables, and what each takes."""
