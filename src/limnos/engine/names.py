"""Names for Spark: parts, quoted, and never text of a user's.

May import nothing. Must not know what a name is of.
"""

from __future__ import annotations


def quoted(*parts: str) -> str:
    """Parts of a name for Spark."""
    return ".".join(f"`{part.replace('`', '``')}`" for part in parts)
