"""The part of pipelines that is Spark's: the only one that imports PySpark, and that only where it is needed."""
