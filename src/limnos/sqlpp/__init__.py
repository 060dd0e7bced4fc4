"""SQL++: reads statements of AsterixDB's language into a tree, writes a tree as text, binds names and works queries out.

May import `names`. Must not know a server, a store or an engine: text in, values out; what names there are and what a dataset holds, it
asks of who calls (`binder.Names`, the rows given to `evaluator.results`).
"""

from limnos.sqlpp import functions, stored, values
from limnos.sqlpp.binder import BoundQuery, EmptyNameResolver, bind
from limnos.sqlpp.errors import BudgetSpent, SqlppError, TextPosition, invalid_name
from limnos.sqlpp.evaluator import Budget, MeteredBudget, results
from limnos.sqlpp.parser import DEPTH_MAX, ParsedStatement, parse, parse_body
from limnos.sqlpp.printer import identifier, render
from limnos.sqlpp.tree_walk import children, descendants, outline

__all__ = [
    "DEPTH_MAX",
    "BoundQuery",
    "Budget",
    "BudgetSpent",
    "EmptyNameResolver",
    "MeteredBudget",
    "ParsedStatement",
    "SqlppError",
    "TextPosition",
    "bind",
    "children",
    "descendants",
    "functions",
    "identifier",
    "invalid_name",
    "outline",
    "parse",
    "parse_body",
    "render",
    "results",
    "stored",
    "values",
]
