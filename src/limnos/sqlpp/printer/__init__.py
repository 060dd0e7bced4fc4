"""The printer of SQL++: a tree's text, from which the parser makes the same tree again.

May import the tree, `tokens` and `names`. Must not know the parser.
"""

from limnos.sqlpp.printer import expressions, queries, statements
from limnos.sqlpp.printer.base import identifier, printed_kinds, render

__all__ = ["expressions", "identifier", "printed_kinds", "queries", "render", "statements"]
