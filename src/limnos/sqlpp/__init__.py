# SPDX-License-Identifier: Apache-2.0
"""SQL++: parses statements of AsterixDB's language into a syntax tree, prints a tree as text, binds names and evaluates
queries.

Must not know a server, a store or an engine: it converts text to trees, plans and values. The caller resolves names
(`binder.NameResolver`) and supplies the objects of datasets (`rows` of `evaluator.results`).
"""

from limnos.sqlpp import functions, stored, values
from limnos.sqlpp.binder import BoundQuery, EmptyNameResolver, bind
from limnos.sqlpp.errors import BudgetSpent, SqlppError, TextPosition, invalid_name
from limnos.sqlpp.evaluator import MeteredBudget, results
from limnos.sqlpp.parser import DEPTH_MAX, ParsedStatement, parse, parse_body
from limnos.sqlpp.printer import render
from limnos.sqlpp.tree_walk import descendants, outline
