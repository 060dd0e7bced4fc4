# SPDX-License-Identifier: Apache-2.0
"""Spark for Limnos: sessions with the catalogs of a metalake.

`session` returns a SparkSession with a metalake's catalogs, and `table` a table of any of them. The package uses a
server's protocols only and must not import the server's packages. PySpark is imported only when a session is requested.
"""

from __future__ import annotations

from limnos.spark.session import session
from limnos.spark.tables import table

__all__ = ["session", "table"]
