"""Values of SQL++ and what operators do with them: types, total order, comparison, arithmetic, steps into values, LIKE.

May import `errors`. Must not know the syntax tree: an evaluator above it works a tree out with these. Pure functions; what
cannot be worked out is NULL or an error of the language.
"""

from limnos.sqlpp.values import access, arithmetic, comparison, model, order, text

__all__ = ["access", "arithmetic", "comparison", "model", "order", "text"]
