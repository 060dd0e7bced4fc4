# SPDX-License-Identifier: Apache-2.0
"""Translation of Spark's pushed-down filters to Lance's SQL.

Pure. Filters that Lance and Spark may evaluate differently stay in Spark: on floating-point numbers (zeros and NaNs),
times and decimals.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable
from typing import Final

from pyspark.sql import datasource as spark

_COMPARISONS: Final[dict[type[spark.Filter], str]] = {
    spark.EqualTo: "=",
    spark.EqualNullSafe: "IS NOT DISTINCT FROM",
    spark.GreaterThan: ">",
    spark.GreaterThanOrEqual: ">=",
    spark.LessThan: "<",
    spark.LessThanOrEqual: "<=",
}
_FUNCTIONS: Final[dict[type[spark.Filter], str]] = {
    spark.StringContains: "contains",
    spark.StringStartsWith: "starts_with",
    spark.StringEndsWith: "ends_with",
}
_IN_MAX: Final = 1000
_INTEGER_MAX: Final = 1 << 63


def condition_of(filters: Iterable[str]) -> str | None:
    """Join SQL conditions by AND, each in parentheses; None if there are none."""
    return " AND ".join(f"({each})" for each in filters) or None


def sql_of(condition: spark.Filter) -> str | None:
    """Translate a filter to Lance's SQL; None if Spark must evaluate it."""
    if isinstance(condition, spark.Not):
        inner = sql_of(condition.child)
        return None if inner is None else f"NOT ({inner})"
    column = _column(getattr(condition, "attribute", ()))
    if column is None:
        return None
    if isinstance(condition, spark.IsNull):
        return f"{column} IS NULL"
    if isinstance(condition, spark.IsNotNull):
        return f"{column} IS NOT NULL"
    if isinstance(condition, spark.In):
        values = [_literal(each) for each in condition.value]
        non_null_values = [each for each in values if each is not None]
        return (
            f"{column} IN ({', '.join(non_null_values)})"
            if non_null_values and len(non_null_values) == len(values) <= _IN_MAX
            else None
        )
    value = _literal(getattr(condition, "value", None))
    if value is None:
        return None
    if type(condition) in _FUNCTIONS:
        return f"{_FUNCTIONS[type(condition)]}({column}, {value})"
    return f"{column} {_COMPARISONS[type(condition)]} {value}" if type(condition) in _COMPARISONS else None


def _column(path: tuple[str, ...]) -> str | None:
    """Return the path of a column or nested field in Lance's SQL; None for names that cannot be quoted."""
    if not path or any("`" in part for part in path):
        return None
    return ".".join(f"`{part}`" for part in path)


def _literal(value: object) -> str | None:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value) if -_INTEGER_MAX <= value < _INTEGER_MAX else None
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    if isinstance(value, dt.date) and not isinstance(value, dt.datetime):
        return f"date '{value.isoformat()}'"
    return None
