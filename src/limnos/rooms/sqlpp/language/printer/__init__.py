# SPDX-License-Identifier: Apache-2.0
"""The printer of SQL++: renders a syntax tree as text that the parser reads as the same tree.

Must not know the parser.
"""

from limnos.rooms.sqlpp.language.printer import expressions, queries, statements, updates
from limnos.rooms.sqlpp.language.printer.base import printed_kinds, render

__all__ = ["expressions", "printed_kinds", "queries", "render", "statements", "updates"]
