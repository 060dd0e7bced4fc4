"""SQL++: reads statements of AsterixDB's language into a tree, writes a tree as text, and knows how values compare and add up.

May import `names`. Must not know a server, a store or an engine: text in, values out. Nothing serves it yet.
"""

from limnos.sqlpp import values
from limnos.sqlpp.errors import Place, SqlppError, invalid_name
from limnos.sqlpp.parser import DEPTH_MAX, Parsed, parse, parse_body
from limnos.sqlpp.printer import identifier, render
from limnos.sqlpp.walk import children, descendants, outline

__all__ = [
    "DEPTH_MAX",
    "Parsed",
    "Place",
    "SqlppError",
    "children",
    "descendants",
    "identifier",
    "invalid_name",
    "outline",
    "parse",
    "parse_body",
    "render",
    "values",
]
