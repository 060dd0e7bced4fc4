# SPDX-License-Identifier: Apache-2.0
"""The built-in functions of SQL++, one module for each family.

Importing the package registers all functions. Must not know plans.
"""

from limnos.rooms.sqlpp.language.functions import (
    aggregates,
    binaries,
    collections,
    conditions,
    formats,
    geometries,
    intersections,
    intervals,
    json_values,
    names,
    numbers,
    objects,
    patterns,
    shapes,
    similarity,
    strings,
    time_zones,
    times,
    tokens,
    types,
    vectors,
    windows,
)
from limnos.rooms.sqlpp.language.functions.table import (
    ANY_NUMBER,
    FUNCTIONS,
    Function,
    find,
    normalize_name,
    unknown_function,
)
