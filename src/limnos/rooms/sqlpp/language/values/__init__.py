# SPDX-License-Identifier: Apache-2.0
"""Values of SQL++ and their operators: types, total order, comparison, arithmetic, field and item access, LIKE.

Must not know the syntax tree. Pure functions; an undefined result is NULL or an error of the language.
"""

from limnos.rooms.sqlpp.language.values import access, arithmetic, comparison, model, order, text

__all__ = ["access", "arithmetic", "comparison", "model", "order", "text"]
