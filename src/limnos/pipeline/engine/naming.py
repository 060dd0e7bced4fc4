"""Names as Spark's SQL writes them.

Job: quote parts of a name so that dots, back quotes and blanks in them are letters. Pure: may import nothing but the
standard library, and knows nothing of sessions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


def quote_identifier(parts: Iterable[str]) -> str:
    """Parts as an identifier: `` `a.b`.`c` ``."""
    return ".".join("`" + part.replace("`", "``") + "`" for part in parts)


BAD, FILE = "_limnos_text", "_limnos_file"
"""Columns that are put beside those of a file, by which its malformed rows are known."""
