"""Quoted names for Spark SQL.

May import nothing. Must not know what a name refers to.
"""

from __future__ import annotations

from typing import Final

STATEMENT: Final = "spark.sql.iceberg.snapshot-property.sqlpp.statement"
"""Session setting that puts the statement's id into the summary of each snapshot that the session commits."""


def quote_name(*parts: str) -> str:
    """A qualified name in backticks: `quote_name("c", "a`b")` is `` `c`.`a``b` ``."""
    return ".".join(f"`{part.replace('`', '``')}`" for part in parts)
