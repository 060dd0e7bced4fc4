# SPDX-License-Identifier: Apache-2.0
"""Addresses of connectors: one host, one port, no credentials of the server's account, and no caller's text in a
statement.
"""

from __future__ import annotations

import pytest
import sqlalchemy as sa
from sqlalchemy.dialects import postgresql

from limnos.model.errors import BadRequest, UnsupportedOperation
from limnos.model.kinds import POSTGRESQL_PROVIDER
from limnos.rooms.connectors.sources.columns import DialectTypes, column_of, default_json, type_json, type_of
from limnos.rooms.connectors.sources.registry import check_source
from limnos.sources.connectors.opening import SourceLimits

LIMITS = SourceLimits(("db:5432", "[::1]:5433"), timeout_s=1.0)
GOOD = {"jdbc-url": "jdbc:postgresql://db/shop", "jdbc-user": "u", "jdbc-password": "p"}
DIALECT = postgresql.psycopg.dialect()


@pytest.mark.parametrize(
    "url",
    [
        "jdbc:postgresql://db/shop",
        "jdbc:postgresql://DB:5432/shop?sslmode=require",
        "jdbc:postgresql://[::1]:5433/shop",
    ],
)
def test_allowed_addresses_are_accepted(url: str) -> None:
    """The port is optional, and a host may be IPv6."""
    check_source(POSTGRESQL_PROVIDER, {**GOOD, "jdbc-url": url}, limits=LIMITS)


@pytest.mark.parametrize(
    "name, value, words",
    [
        ("jdbc-url", "jdbc:postgresql://10.0.0.1:5432/d", "--allow-source 10.0.0.1:5432"),
        ("jdbc-url", "jdbc:postgresql://db:5433/d", "--allow-source db:5433"),
        ("jdbc-url", "jdbc:mysql://db:1/", "jdbc:postgresql://"),
        ("jdbc-url", "jdbc:postgresql://u:p@db/d", "jdbc-user"),
        ("jdbc-url", "jdbc:postgresql://db:5432,10.0.0.1:2/d", "one host"),
        ("jdbc-url", "jdbc:postgresql://db,other/d", "exactly one host"),
        ("jdbc-url", "jdbc:postgresql://%2Fvar%2Frun/d", "exactly one host"),
        ("jdbc-url", "jdbc:postgresql:///d", "exactly one host"),
        ("jdbc-url", "jdbc:postgresql://db/d?sslkey=/etc/passwd", "sslkey"),
        ("jdbc-url", "jdbc:postgresql://db/d?options=-csearch_path%3Dx", "options"),
        ("jdbc-url", "jdbc:postgresql://db/d?sslmode=verify-full", "sslmode"),
        ("jdbc-url", "jdbc:postgresql://db:99999/d", "jdbc-url"),
        ("jdbc-url", "jdbc:postgresql://db/", "jdbc-database"),
        ("jdbc-url", "", "jdbc-url"),
        ("jdbc-password", "", "jdbc-password"),
        ("jdbc-user", "", "jdbc-user"),
    ],
)
def test_disallowed_addresses_are_refused_with_advice(name: str, value: str, words: str) -> None:
    """Each refused address has advice, or names who can allow it."""
    with pytest.raises(BadRequest) as error:
        check_source(POSTGRESQL_PROVIDER, {**GOOD, name: value}, limits=LIMITS)

    assert words in error.value.message


@pytest.mark.parametrize("text", ["int); DROP TABLE t; --", "varchar(3)", "nothing", "int4 /*", ""])
def test_external_types_unknown_to_the_dialect_are_refused(text: str) -> None:
    """Types that the dialect does not know by name are refused, so that no caller's text gets into a statement."""
    with pytest.raises(BadRequest):
        type_of({"type": "external", "catalogString": text}, column="c", dialect=DIALECT)


def test_literals_are_quoted_by_the_dialect() -> None:
    """Quotes in a default are escaped by the dialect."""
    default = {"type": "literal", "dataType": "string", "value": "x'); DROP TABLE t; --"}
    column = column_of({"name": 'a"b', "type": "string", "defaultValue": default}, dialect=DIALECT)
    statement = str(sa.schema.CreateTable(sa.Table("t", sa.MetaData(), column)).compile(dialect=DIALECT))

    assert """"a""b" TEXT DEFAULT 'x''); DROP TABLE t; --'""" in statement


@pytest.mark.parametrize(
    "column",
    [
        {"name": "c", "type": "decimal(39,1)"},
        {"name": "c", "type": "decimal(3,4)"},
        {"name": "c", "type": "timestamp(7)"},
        {"name": "c", "type": {"type": "list", "elementType": {"type": "list", "elementType": "long"}}},
        {"name": "c", "type": {"type": "map"}},
        {"name": "c", "type": None},
        {"name": "", "type": "long"},
        {"type": "long"},
        {"name": "é" * 32, "type": "long"},
        {"name": "c", "type": "date", "autoIncrement": True},
        {"name": "c", "type": "date", "defaultValue": {"type": "literal", "value": 3}},
    ],
)
def test_invalid_columns_are_refused(column: dict[str, object]) -> None:
    """Unknown types, names that the database would truncate, and auto-increment dates are refused."""
    with pytest.raises(BadRequest):
        column_of(column, dialect=DIALECT)


def test_expressions_as_defaults_are_refused() -> None:
    """Only literals and the current time are supported as defaults."""
    expression = {"type": "function", "funcName": "pg_sleep", "funcArgs": []}
    with pytest.raises(UnsupportedOperation):
        column_of({"name": "c", "type": "date", "defaultValue": expression}, dialect=DIALECT)


@pytest.mark.parametrize(
    "text, value",
    [
        ("'it''s'::character varying", "it's"),
        ("(-5)", "-5"),
        ("'-5'::integer", "-5"),
        ("true", "true"),
        ("0.50", "0.50"),
    ],
)
def test_plain_defaults_are_decoded_from_database_literals(text: str, value: str) -> None:
    """Plain defaults that the database returns are decoded to literals."""
    assert default_json(text, "string") == {"type": "literal", "dataType": "string", "value": value}


def test_empty_string_is_a_default_of_strings_only() -> None:
    """The empty string is a value like any other of a string, and none of a number."""
    default = {"type": "literal", "dataType": "string", "value": ""}
    column = column_of({"name": "c", "type": "varchar(3)", "defaultValue": default}, dialect=DIALECT)
    statement = str(sa.schema.CreateTable(sa.Table("t", sa.MetaData(), column)).compile(dialect=DIALECT))

    assert "c VARCHAR(3) DEFAULT ''" in statement
    with pytest.raises(BadRequest, match="default of strings only"):
        column_of({"name": "c", "type": "long", "defaultValue": default}, dialect=DIALECT)


def test_internal_character_types_keep_their_names() -> None:
    """PostgreSQL's `"char"` and `name` have other lengths than VARCHAR, for which SQLAlchemy takes them."""
    for name in ('"char"', "name"):
        kind = type_of({"type": "external", "catalogString": name}, column="c", dialect=DIALECT)

        assert kind.compile(DIALECT) == name
        assert type_json(DialectTypes(DIALECT.ischema_names).get(name)(), DIALECT) == {
            "type": "external",
            "catalogString": name,
        }
