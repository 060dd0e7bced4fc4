"""Spark for Limnos: sessions over its catalogs.

Job: `session`, a SparkSession with a metalake's catalogs registered; `table`, a table of any of them. The room talks to a server through its protocols
only and must not import the server's rooms. PySpark itself is imported when a session is asked for, not before.
"""

from __future__ import annotations

from limnos.spark.session import session
from limnos.spark.tables import table

__all__ = ["session", "table"]
