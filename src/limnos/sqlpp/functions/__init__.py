"""The functions of SQL++, by family.

Importing this fills the table. May import `values` and `names`. Must not know plans.
"""

from limnos.sqlpp.functions import (
    aggregates,
    binaries,
    collections,
    conditions,
    formats,
    intervals,
    names,
    numbers,
    objects,
    patterns,
    shapes,
    similarity,
    strings,
    times,
    types,
    vectors,
    windows,
)
from limnos.sqlpp.functions.table import ANY_NUMBER, FUNCTIONS, Function, find, normalize_name, unknown_function

__all__ = [
    "ANY_NUMBER",
    "FUNCTIONS",
    "Function",
    "aggregates",
    "binaries",
    "collections",
    "conditions",
    "find",
    "formats",
    "intervals",
    "names",
    "normalize_name",
    "numbers",
    "objects",
    "patterns",
    "shapes",
    "similarity",
    "strings",
    "times",
    "types",
    "unknown_function",
    "vectors",
    "windows",
]
