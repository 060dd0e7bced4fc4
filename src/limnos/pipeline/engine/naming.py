# SPDX-License-Identifier: Apache-2.0
"""Quoting of names for Spark's SQL.

Quotes parts of a name so that dots, back quotes and spaces in them are literal. Pure: may import the standard library
only. Must not know sessions.
"""

from __future__ import annotations

from collections.abc import Iterable


def quote_identifier(parts: Iterable[str]) -> str:
    """Quote the parts as an identifier: `` `a.b`.`c` ``."""
    return ".".join("`" + part.replace("`", "``") + "`" for part in parts)


BAD, FILE = "_limnos_text", "_limnos_file"
"""Helper columns that identify malformed rows of a file: the row's text and its file."""
