"""The functions of SQL++, by family.

Importing this fills the table. May import `values` and `names`. Must not know plans.
"""

from limnos.sqlpp.functions import (
    aggregates,
    collections,
    conditions,
    names,
    numbers,
    objects,
    patterns,
    strings,
    times,
    types,
    windows,
)
from limnos.sqlpp.functions.table import ANY_NUMBER, FUNCTIONS, Function, find, normal, unknown

__all__ = [
    "ANY_NUMBER",
    "FUNCTIONS",
    "Function",
    "aggregates",
    "collections",
    "conditions",
    "find",
    "names",
    "normal",
    "numbers",
    "objects",
    "patterns",
    "strings",
    "times",
    "types",
    "unknown",
    "windows",
]
