"""Names for Spark: parts, quoted, and never text of a user's.

May import nothing. Must not know what a name is of.
"""

from __future__ import annotations

from typing import Final

STATEMENT: Final = "spark.sql.iceberg.snapshot-property.sqlpp.statement"
"""The setting of a session that says which statement its snapshots are of."""


def quote_name(*parts: str) -> str:
    """Parts of a name for Spark."""
    return ".".join(f"`{part.replace('`', '``')}`" for part in parts)
