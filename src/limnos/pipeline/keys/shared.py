# SPDX-License-Identifier: Apache-2.0
"""Schemas that many keys use: names, columns, SQL, options, functions.

Must not know keys.
"""

from __future__ import annotations

from typing import Any

from limnos.pipeline.compound_schemas import ListOf, MapOf
from limnos.pipeline.directory import FunctionArgument
from limnos.pipeline.node_schemas import AnyScalar, NodeSite, Text

WORD = Text(
    word="a name", pattern=r"[A-Za-z_][A-Za-z0-9_]{0,99}", rule="write letters, digits and '_', beginning with a letter"
)
PIPELINE_NAME = Text(
    word="a name",
    pattern=r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}",
    rule="write up to 64 letters, digits, '_' and '-', beginning with a letter or digit",
)
TEXT = Text()
SQL = Text(word="SQL", sql=True)
COLUMNS = ListOf(Text(word="a column"), single=True)
OPTIONS = MapOf(Text(word="a name"), AnyScalar())
FUNCTION = Text(
    word="a function",
    pattern=r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*",
    rule="write module:function, like delays:make for 'make' in delays.py beside the file",
)
TRANSFORM = Text(
    word="a column or transform",
    pattern=r"(`[^`]+`|[A-Za-z_][\w.]*|(years?|months?|days?|hours?|date|date_hour|bucket|truncate)\s*\([^()]*\))",
    rule="write a column, or years(c), months(c), days(c), hours(c), bucket(16, c), truncate(10, c)",
)
TAG = Text(
    word="a tag",
    pattern=r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}",
    rule="write up to 64 letters, digits, '_', '-' and '.', beginning with a letter or digit",
)
ORDER = Text(
    word="a column",
    pattern=r"\S.*?(\s+([Aa][Ss][Cc]|[Dd][Ee][Ss][Cc]))?(\s+[Nn][Uu][Ll][Ll][Ss]\s+([Ff][Ii][Rr][Ss][Tt]|[Ll][Aa][Ss][Tt]))?",
    rule="write a column, optionally followed by 'desc' or 'nulls last'",
)
ENVIRONMENT = Text(
    word="an environment variable's name",
    pattern=r"[A-Za-z_][A-Za-z0-9_]*",
    rule="name the environment variable that contains the password",
)


def pairs(items: tuple[tuple[str, Any, object], ...]) -> list[tuple[str, Any]]:
    """Return keys and values of a mapping without their positions."""
    return [(key, value) for key, value, _ in items]


def require_function(function: str, site: NodeSite) -> tuple[FunctionArgument, ...] | None:
    """Return the arguments of a function in the pipeline's directory; None for a function of an installed module.
    Raises InvalidNode if there is no such function. Nothing is imported.
    """
    try:
        return site.beside.arguments(function)
    except ValueError as error:
        raise site.bad(str(error)) from None
