# SPDX-License-Identifier: Apache-2.0
"""SQL++: parses statements of AsterixDB's language into a syntax tree, prints a tree as text, binds names and evaluates
queries.

Must not know a server, a store or an engine: it converts text to trees, plans and values. The caller resolves names
(`binder.NameResolver`) and supplies the objects of datasets (`rows` of `evaluator.results`).
"""

from limnos.rooms.sqlpp.language import functions, stored, values
from limnos.rooms.sqlpp.language.binder import BoundQuery, EmptyNameResolver, bind
from limnos.rooms.sqlpp.language.errors import BudgetSpent, SqlppError, TextPosition, invalid_name
from limnos.rooms.sqlpp.language.evaluator import MeteredBudget, results
from limnos.rooms.sqlpp.language.parser import DEPTH_MAX, ParsedStatement, parse, parse_body
from limnos.rooms.sqlpp.language.printer import render
from limnos.rooms.sqlpp.language.tree_walk import descendants, outline
