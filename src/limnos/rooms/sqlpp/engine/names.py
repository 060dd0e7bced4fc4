# SPDX-License-Identifier: Apache-2.0
"""Quoted names for Spark SQL.

Must not know the objects that names refer to.
"""

from __future__ import annotations

from typing import Final

STATEMENT: Final = "spark.sql.iceberg.snapshot-property.sqlpp.statement"
"""Session setting that puts the statement's id into the summary of each snapshot that the session commits."""


def quote_name(*parts: str) -> str:
    """Return a qualified name in backticks: `quote_name("c", "a`b")` is `` `c`.`a``b` ``."""
    return ".".join(f"`{part.replace('`', '``')}`" for part in parts)
