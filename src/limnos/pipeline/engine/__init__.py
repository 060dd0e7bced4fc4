"""The Spark part of pipelines: the only part that imports PySpark, and only when it is needed."""
