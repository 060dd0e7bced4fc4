"""Random SQL++ queries: Spark's and DuckDB's results compared with the evaluator's."""
