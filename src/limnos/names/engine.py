# SPDX-License-Identifier: Apache-2.0
"""Encodings of names as identifiers of SQL engines: Spark and Flink `` `a`.`b`.c ``, Trino `"a.b.c"`.

Must not know any catalog. Each rendering is lossless. A name that the engine cannot express is refused with
InvalidName, so that an identifier never refers to another object.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from limnos.names.errors import InvalidName, Reason
from limnos.names.parts import Levels, check_part, check_some_levels, quote_for_message

_SPARK_BARE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_BACK_QUOTED = re.compile(r"`(?P<quoted>(?:[^`]|``)+)`|(?P<bare>[A-Za-z0-9_]+)")
_DOUBLE_QUOTED = re.compile(r'"(?P<quoted>(?:[^"]|"")+)"|(?P<bare>[A-Za-z_][A-Za-z0-9_]*)')

# Words that Spark's parser refuses bare when spark.sql.ansi.enforceReservedKeywords is on (4.1.4, sql_keywords()).
_SPARK_WORDS = """
    ALL AND ANY AS AUTHORIZATION BOTH CALL CASE CAST CHECK COLLATE COLLATION COLUMN CONSTRAINT CREATE CROSS
    CURRENT_DATE CURRENT_TIME CURRENT_TIMESTAMP CURRENT_USER DISTINCT ELSE END ESCAPE EXCEPT EXECUTE FALSE FETCH
    FILTER FOR FOREIGN FROM FULL GRANT GROUP HAVING IN INNER INTERSECT INTO IS JOIN LATERAL LEADING LEFT NATURAL NOT
    NULL OFFSET ON ONLY OR ORDER OUTER OVERLAPS PRIMARY RECURSIVE REFERENCES RIGHT SELECT SESSION_USER SOME SQL
    TABLE THEN TIME TO TRAILING UNION UNIQUE UNKNOWN USER USING WHEN WHERE WITH WITHIN
"""
_SPARK_RESERVED = frozenset(_SPARK_WORDS.split())


def render_spark(parts: Levels) -> str:
    """Return a multi-part identifier for Spark SQL, with parts quoted where needed.

    Raises InvalidName for an invalid part, and for `${` in a part: Spark substitutes variables in the whole statement,
    also inside quotes.
    """
    for part in check_some_levels(parts):
        if "${" in part:
            raise _cannot("Spark", part, why="it replaces '${…}' in every statement, also inside quotes")
    return ".".join(map(_spark_part, parts))


def parse_spark(text: str) -> Levels:
    """Return the parts of a Spark identifier.

    Bare parts may start with a digit, as Spark prints them. Raises InvalidName for a malformed identifier.
    """
    return check_some_levels(_parse(text, _BACK_QUOTED, unquote=lambda body: body.replace("``", "`")))


def render_flink(parts: Levels) -> str:
    """Return a multi-part identifier for Flink SQL.

    Every part is quoted, because each release of Flink reserves more words. Raises InvalidName for an invalid part, and
    for a line break in a part, which ends a quoted identifier in Flink.
    """
    for part in check_some_levels(parts):
        if "\n" in part or "\r" in part:
            raise _cannot("Flink", part, why="its quoted identifiers cannot contain line breaks")
    return ".".join(map(_back_quote, parts))


def parse_flink(text: str) -> Levels:
    """Return the parts of a Flink identifier. Raises InvalidName for a malformed identifier."""
    return parse_spark(text)


def render_trino(levels: Levels) -> str:
    """Return a schema identifier for Trino: all levels in one quoted name, joined by dots.

    Raises InvalidName for an invalid level, a level with a dot (it would be parsed as two levels) or with upper-case
    letters (Trino folds case), and for the reserved name `information_schema`.
    """
    for level in check_some_levels(levels):
        if "." in level:
            raise _cannot("Trino", level, why="it joins the levels of a schema by dots", reason="separator-in-part")
        _check_folding(level)
    if levels == ("information_schema",):
        raise InvalidName("reserved-name", "Trino reserves the schema name 'information_schema'. Rename it.")
    return _double_quote(".".join(levels))


def render_trino_table(levels: Levels, *, name: str) -> str:
    """Return schema and table for Trino, such as `"a.b"."t"`.

    A table's name may contain dots. Raises InvalidName for `$`, `@` or upper-case letters in it, for an invalid name,
    and for levels that `render_trino` refuses.
    """
    schema = render_trino(levels)
    if "$" in check_part(name) or "@" in name:
        raise _cannot("Trino", name, why="its Iceberg connector reads '$' and '@' as the mark of a metadata table")
    _check_folding(name)
    return f"{schema}.{_double_quote(name)}"


def parse_trino(text: str) -> Levels:
    """Return the levels of a Trino schema identifier, in lower case as Trino reads it.

    Raises InvalidName for a malformed identifier.
    """
    identifiers = _parse_trino(text)
    if len(identifiers) != 1:
        raise InvalidName(
            "too-many-parts",
            f"{quote_for_message(text)} is not one Trino identifier. Write all levels of the schema in one pair of"
            " double quotes.",
        )
    return check_some_levels(identifiers[0].split("."))


def parse_trino_table(text: str) -> tuple[Levels, str]:
    """Return the levels and the table name of `"a.b"."t"`, in lower case as Trino reads them.

    Raises InvalidName for a malformed identifier.
    """
    identifiers = _parse_trino(text)
    if len(identifiers) != 2:
        raise InvalidName("too-few-parts", f'{quote_for_message(text)} is not of the form "schema"."table". Give both.')
    return check_some_levels(identifiers[0].split(".")), check_part(identifiers[1])


def _spark_part(part: str) -> str:
    is_bare = _SPARK_BARE.fullmatch(part) and part.upper() not in _SPARK_RESERVED
    return part if is_bare else _back_quote(part)


def _back_quote(part: str) -> str:
    return "`" + part.replace("`", "``") + "`"


def _double_quote(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'


def _check_folding(part: str) -> None:
    if part != part.lower():
        raise InvalidName(
            "case-folded",
            f"Trino cannot name {quote_for_message(part)}: it turns names into lower case. Rename it to lower case.",
        )


def _cannot(engine: str, part: str, *, why: str, reason: Reason = "forbidden-character") -> InvalidName:
    return InvalidName(
        reason, f"{engine} cannot name {quote_for_message(part)}, because {why}. Rename it for {engine}."
    )


def _parse_trino(text: str) -> Levels:
    return tuple(part.lower() for part in _parse(text, _DOUBLE_QUOTED, unquote=lambda body: body.replace('""', '"')))


def _parse(text: str, pattern: re.Pattern[str], *, unquote: Callable[[str], str]) -> Levels:
    parts: list[str] = []
    position = 0
    while True:
        match = pattern.match(text, position)
        if match is None:
            raise _bad_text(text, position)
        parts.append(match["bare"] if match["quoted"] is None else unquote(match["quoted"]))
        position = match.end()
        if position == len(text):
            return tuple(parts)
        if text[position] != ".":
            raise _bad_text(text, position)
        position += 1


def _bad_text(text: str, position: int) -> InvalidName:
    return InvalidName(
        "bad-quotes",
        f"The identifier {quote_for_message(text)} cannot be read at character {position + 1}. Quote each part that has"
        " more than letters, digits and '_', double a quote inside it, and put one dot between parts.",
    )
