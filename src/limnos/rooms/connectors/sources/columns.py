# SPDX-License-Identifier: Apache-2.0
"""Columns of databases: SQLAlchemy's types and defaults to Gravitino's JSON and back (table in
docs/guides/connectors.md).

Pure. A type that Gravitino lacks becomes `external` with the database's own name. A request may use such a type only if
the dialect supports its name, so no string of a request becomes part of a statement.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql as pg
from sqlalchemy.engine.interfaces import Dialect, ReflectedColumn

from limnos.formats.iceberg.json_types import Json, as_object, preview_value, string_at, text_at
from limnos.model.errors import BadRequest, UnsupportedOperation

Type = sa.types.TypeEngine[Any]  # SQLAlchemy has no narrower word for the type of any column

_PLAIN: Final[Mapping[str, Callable[[], Type]]] = {
    "boolean": sa.BOOLEAN,
    "short": sa.SMALLINT,
    "integer": sa.INTEGER,
    "long": sa.BIGINT,
    "float": sa.REAL,
    "double": sa.DOUBLE_PRECISION,
    "string": sa.TEXT,
    "date": sa.DATE,
    "time": pg.TIME,
    "timestamp": pg.TIMESTAMP,
    "timestamp_tz": lambda: pg.TIMESTAMP(timezone=True),
    "binary": pg.BYTEA,
    "uuid": sa.UUID,
}
_SIZED: Final = re.compile(r"(time|timestamp|timestamp_tz|char|varchar)\(\s*(\d{1,9})\s*\)")
_DECIMAL: Final = re.compile(r"decimal\(\s*(\d{1,2})\s*,\s*(\d{1,2})\s*\)")
_QUOTED: Final = re.compile(r"'((?:[^']|'')*)'(?:::[\w .,()\[\]\"]+)?")
_NUMBER: Final = re.compile(r"\(?(-?\d+(?:\.\d+)?)\)?(?:::[\w .,()]+)?")
_SEQUENCE: Final = re.compile(r"nextval\('.*'::regclass\)")
_NOW: Final = frozenset({"now", "current_timestamp"})
PRECISION_MAX: Final = 38


class UnmappedType(sa.types.UserDefinedType[object]):
    """A type that SQLAlchemy does not support, under the database's name for it. Only reflection creates it."""

    cache_ok = True

    def __init__(self, name: str, *sizes: str | int, **_: object) -> None:
        self.text = f"{name}({','.join(map(str, sizes))})" if sizes else name

    def get_col_spec(self, **_: object) -> str:
        """Return the database's name of the type, as SQLAlchemy's type compiler requires."""
        return self.text


class DialectTypes(dict[str, "Callable[..., Type]"]):
    """A dialect's type constructors by name. An unsupported name gets an UnmappedType, whereas SQLAlchemy would warn
    and discard the name. So do types of one database for its own use, such as PostgreSQL's `"char"`, which SQLAlchemy
    takes for VARCHAR.
    """

    def get(self, name: str, _default: object = None) -> Callable[..., Type]:
        """Return the constructor of the type `name`; that of UnmappedType if the dialect does not support it."""
        constructor = super().get(name)
        return partial(UnmappedType, name) if constructor in (None, sa.String) else constructor


def type_json(kind: Type, dialect: Dialect) -> object:
    """Return a reflected type as Gravitino's JSON, such as `"integer"` or `{"type": "list", …}`."""
    for base, word in _WORDS:
        if isinstance(kind, base):
            return word(kind) or _external(kind, dialect)
    if isinstance(kind, sa.ARRAY):
        return {"type": "list", "containsNull": True, "elementType": type_json(kind.item_type, dialect)}
    return _external(kind, dialect)


def _external(kind: Type, dialect: Dialect) -> Json:
    text = kind.compile(dialect)
    return {"type": "external", "catalogString": text.lower()}


def _decimal(kind: sa.Numeric[Any]) -> str | None:
    if kind.precision is None or kind.precision > PRECISION_MAX or not 0 <= (kind.scale or 0) <= kind.precision:
        return None
    return f"decimal({kind.precision},{kind.scale or 0})"


def _time(kind: pg.TIME) -> str | None:
    if kind.timezone:
        return None
    return "time" if kind.precision is None else f"time({kind.precision})"


def _timestamp(kind: pg.TIMESTAMP) -> str:
    word = "timestamp_tz" if kind.timezone else "timestamp"
    return word if kind.precision is None else f"{word}({kind.precision})"


_WORDS: Final[tuple[tuple[type[Type], Callable[..., str | None]], ...]] = (
    (sa.Boolean, lambda _: "boolean"),
    (sa.SmallInteger, lambda _: "short"),
    (sa.BigInteger, lambda _: "long"),
    (sa.Integer, lambda _: "integer"),
    (sa.REAL, lambda _: "float"),
    (sa.Double, lambda _: "double"),
    (sa.Float, lambda _: "double"),
    (sa.Numeric, _decimal),
    (sa.CHAR, lambda kind: f"char({kind.length or 1})"),
    (sa.Text, lambda _: "string"),
    (sa.VARCHAR, lambda kind: f"varchar({kind.length})" if kind.length else "string"),
    (sa.Date, lambda _: "date"),
    (pg.TIMESTAMP, _timestamp),
    (pg.TIME, _time),
    (pg.BYTEA, lambda _: "binary"),
    (sa.Uuid, lambda _: "uuid"),
)
"""The mapping of types; the first match applies. A function that returns None makes the type external."""


def type_of(value: object, *, column: str, dialect: Dialect) -> Type:
    """Return the database's type for Gravitino's JSON. Raises BadRequest if the database has none."""
    if isinstance(value, str):
        return _plain_of(value, column=column)
    nested, where = as_object(value, f"The type of column {preview_value(column)}"), f"Column {preview_value(column)}"
    kind = text_at(nested, "type", where=where).lower()
    if kind == "list":
        element = type_of(nested.get("elementType"), column=column, dialect=dialect)
        if isinstance(element, sa.ARRAY):
            raise _unknown(column, "list of lists")
        return pg.ARRAY(element)
    if kind == "external":
        return _find_type(text_at(nested, "catalogString", where=where), column=column, dialect=dialect)
    raise _unknown(column, kind)


def _plain_of(text: str, *, column: str) -> Type:
    word = " ".join(text.lower().split())
    if word in _PLAIN:
        return _PLAIN[word]()
    decimal, sized = _DECIMAL.fullmatch(word), _SIZED.fullmatch(word)
    if decimal is not None and 0 < int(decimal[1]) <= PRECISION_MAX and int(decimal[2]) <= int(decimal[1]):
        return sa.NUMERIC(int(decimal[1]), int(decimal[2]))
    if sized is None:
        raise _unknown(column, text)
    kind, size = sized[1], int(sized[2])
    if kind in ("char", "varchar"):
        return sa.CHAR(size) if kind == "char" else sa.VARCHAR(size)
    if size > 6:
        raise _unknown(column, text)
    return pg.TIME(precision=size) if kind == "time" else pg.TIMESTAMP(timezone=kind.endswith("_tz"), precision=size)


def _find_type(text: str, *, column: str, dialect: Dialect) -> Type:
    """Return a type by the database's own name, without parameters, if the dialect supports it. Raises BadRequest for
    any other name.
    """
    type_makers: Mapping[str, Callable[[], Type]] = getattr(type(dialect), "ischema_names", {})
    name = text.strip().lower()
    if name not in type_makers:
        raise _unknown(column, text)
    return DialectTypes(type_makers).get(name)()


def _unknown(column: str, kind: str) -> BadRequest:
    return BadRequest(
        f"Column {preview_value(column)}: the source has no type {preview_value(kind)}; its types are"
        f" {', '.join(_PLAIN)}, decimal(p,s), char(n), varchar(n), lists of them, and external types by their names"
    )


def column_of(fields: Json, *, dialect: Dialect) -> sa.Column[object]:
    """Build a column from Gravitino's JSON. Raises BadRequest for an invalid definition, UnsupportedOperation for a
    default that databases lack.
    """
    name = name_of(text_at(fields, "name", where="Column"), dialect=dialect)
    kind = type_of(fields.get("type"), column=name, dialect=dialect)
    comment = fields.get("comment") if isinstance(fields.get("comment"), str) else None
    if fields.get("autoIncrement") is True:
        require_counting(kind, column=name)
        return sa.Column(name, kind, sa.Identity(), nullable=False, comment=str(comment) if comment else None)
    default = None if fields.get("defaultValue") is None else default_of(fields["defaultValue"], column=name)
    if default == "" and not isinstance(kind, sa.String):
        raise BadRequest(f"Column {preview_value(name)}: '' is a default of strings only")
    return sa.Column(
        name,
        kind,
        nullable=fields.get("nullable") is not False,
        autoincrement=False,
        server_default=default,
        comment=None if comment is None else str(comment),
    )


def name_of(name: str, *, dialect: Dialect, what: str = "Column") -> str:
    """Return a new name after checking its length: databases truncate a long name without an error. Raises BadRequest
    for a name that is empty or too long.
    """
    most = dialect.max_identifier_length
    if not name or "\0" in name or len(name.encode()) > most:
        raise BadRequest(f"{what} {preview_value(name)} needs a name of 1 to {most} bytes without zeros")
    return name


def require_counting(kind: Type, *, column: str) -> None:
    """Raise BadRequest unless a column of this type can be auto-incremented."""
    if not isinstance(kind, sa.Integer):
        raise BadRequest(f"Column {preview_value(column)} cannot be autoIncrement: that is for short, integer and long")


def default_of(value: object, *, column: str) -> str | sa.ColumnElement[Any] | None:
    """Return a default for DDL: a literal or CURRENT_TIMESTAMP. Raises BadRequest for malformed JSON,
    UnsupportedOperation for any other expression.
    """
    fields = as_object(value, f"The default of column {preview_value(column)}")
    kind, where = fields.get("type"), f"The default of column {preview_value(column)}"
    if kind == "literal":
        text = string_at(fields, "value", where=where)
        return None if text == "NULL" and str(fields.get("dataType", "")).lower() == "null" else text
    if kind == "function" and str(fields.get("funcName", "")).lower() in _NOW and not fields.get("funcArgs"):
        return sa.func.current_timestamp()
    raise UnsupportedOperation(f"{where} must be a literal, or the function current_timestamp")


def default_json(text: str | None, kind: object) -> Json | None:
    """Return a reflected default as Gravitino's JSON. None for a sequence's next value."""
    if text is None or _SEQUENCE.fullmatch(text):
        return None
    quoted, number = _QUOTED.fullmatch(text), _NUMBER.fullmatch(text)
    if quoted is not None:
        return {"type": "literal", "dataType": kind, "value": quoted[1].replace("''", "'")}
    if number is not None or text in ("true", "false"):
        return {"type": "literal", "dataType": kind, "value": text if number is None else number[1]}
    if text.lower().removesuffix("()") in _NOW:
        return {"type": "function", "funcName": "current_timestamp", "funcArgs": []}
    return None if text.upper().startswith("NULL") else {"type": "unparsed", "unparsedExpression": text}


def column_json(result: ReflectedColumn, *, dialect: Dialect) -> Json:
    """Return a reflected column as Gravitino's JSON: name, type, nullability, default and comment."""
    kind, default = type_json(result["type"], dialect), result.get("default")
    counts = result.get("identity") is not None or (default is not None and _SEQUENCE.fullmatch(default) is not None)
    fields: Json = {"name": result["name"], "type": kind, "nullable": result["nullable"], "autoIncrement": counts}
    if result.get("comment"):
        fields["comment"] = result["comment"]
    default_value = None if counts or result.get("computed") else default_json(default, kind)
    return fields if default_value is None else {**fields, "defaultValue": default_value}
