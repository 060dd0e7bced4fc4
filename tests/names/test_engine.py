# SPDX-License-Identifier: Apache-2.0
"""Spellings of names in Spark, Flink and Trino."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given

from limnos.names import InvalidName, Levels, engine
from tests.names.strategies import attempt, levels, parts, refusal


@pytest.mark.parametrize(
    "name,text",
    [
        (("a", "b", "c"), "a.b.c"),
        (("main", "a.b", "t"), "main.`a.b`.t"),
        (("a b", "c"), "`a b`.c"),
        (("a`b",), "`a``b`"),
        (("1a",), "`1a`"),
        (("12",), "`12`"),
        (("my-cat", "é"), "`my-cat`.`é`"),
        (("_x", "T_9"), "_x.T_9"),
        (("select", "Table", "value"), "`select`.`Table`.value"),
        (("a$b",), "`a$b`"),
        (("a\nb",), "`a\nb`"),
    ],
)
def test_spark_backquotes_only_where_needed(name: tuple[str, ...], text: str) -> None:
    """In Spark, a part is unquoted if it is a plain word that is not reserved, else backquoted."""
    assert engine.render_spark(name) == text
    assert engine.parse_spark(text) == name


def test_parts_with_variables_are_refused_for_spark() -> None:
    """A part with `${…}` is refused for Spark, which replaces variables even inside quotes."""
    error = refusal(engine.render_spark, ("a", "x${spark.app.name}"))

    assert error.reason == "forbidden-character"
    assert error.message.startswith("Spark cannot name 'x${spark.app.name}'")


@pytest.mark.parametrize("text,name", [("`a`.`b`.c", ("a", "b", "c")), ("1a.b", ("1a", "b")), ("````", ("`",))])
def test_alternative_spark_spellings_are_parsed(text: str, name: tuple[str, ...]) -> None:
    """Unnecessary quotes, and unquoted parts that start with a digit, are accepted from Spark."""
    assert engine.parse_spark(text) == name


@pytest.mark.parametrize(
    "parse", [engine.parse_spark, engine.parse_flink, engine.parse_trino, engine.parse_trino_table]
)
@pytest.mark.parametrize("text", ["", "a.", ".a", "a..b", "a b", "a-b", "`a", '"a', "`a`b", '"a"b', "``", '""', "é"])
def test_malformed_identifiers_are_refused(parse: Callable[[str], Levels], text: str) -> None:
    """A malformed identifier is refused with the position in the text."""
    error = refusal(parse, text)

    assert error.reason == "bad-quotes"
    assert "at character" in error.message


def test_flink_quotes_everything() -> None:
    """Flink's parts are always quoted."""
    assert engine.render_flink(("a", "b.c", "d`e")) == "`a`.`b.c`.`d``e`"
    assert engine.parse_flink("`a`.`b`.c") == ("a", "b", "c")


@pytest.mark.parametrize("part", ["a\nb", "a\rb"])
def test_line_breaks_are_refused_for_flink(part: str) -> None:
    """A part with a line break is refused for Flink, because it ends a quoted identifier there."""
    assert refusal(engine.render_flink, (part,)).reason == "forbidden-character"


@pytest.mark.parametrize(
    "name,text",
    [(("a", "b", "c"), '"a.b.c"'), (("a",), '"a"'), (('a"b', "c d"), '"a""b.c d"'), (("日本",), '"日本"')],
)
def test_trino_schema_is_one_quoted_identifier(name: tuple[str, ...], text: str) -> None:
    """Trino's schema is one quoted identifier with the levels joined by dots (seed 1)."""
    assert engine.render_trino(name) == text
    assert engine.parse_trino(text) == name


@pytest.mark.parametrize(
    "name,reason,word",
    [
        (("a.b", "c"), "separator-in-part", "dots"),
        (("A",), "case-folded", "lower case"),
        (("a", "É"), "case-folded", "lower case"),
        (("information_schema",), "reserved-name", "information_schema"),
        ((), "empty-name", "no part"),
    ],
)
def test_unrepresentable_schemas_are_refused_for_trino(name: tuple[str, ...], reason: str, word: str) -> None:
    """A level with a dot or upper case, and Trino's own schema, are refused for Trino with the reason."""
    error = refusal(engine.render_trino, name)

    assert error.reason == reason
    assert word in error.message


def test_trino_table_is_second_identifier() -> None:
    """A table is a second identifier after its schema, and its name may contain dots."""
    assert engine.render_trino_table(("a", "b"), name="t.x") == '"a.b"."t.x"'
    assert engine.parse_trino_table('"a.b"."t.x"') == (("a", "b"), "t.x")


@pytest.mark.parametrize(
    "name,reason", [("t$files", "forbidden-character"), ("t@1", "forbidden-character"), ("T", "case-folded")]
)
def test_unrepresentable_tables_are_refused_for_trino(name: str, reason: str) -> None:
    """A table name with the characters of metadata tables or with upper case is refused for Trino."""
    assert refusal(engine.render_trino_table, ("a",), name=name).reason == reason


def test_trino_identifiers_are_lowercased() -> None:
    """Identifiers from Trino are converted to lower case, quoted or not."""
    assert engine.parse_trino("Sales") == ("sales",)
    assert engine.parse_trino('"A.b"') == ("a", "b")


def test_trino_identifier_count_is_checked() -> None:
    """A schema must be one identifier, a table two."""
    assert refusal(engine.parse_trino, '"a"."b"').reason == "too-many-parts"
    assert refusal(engine.parse_trino_table, '"a"').reason == "too-few-parts"
    assert refusal(engine.parse_trino, '"a..b"').reason == "empty-part"


CODECS = [
    (engine.render_spark, engine.parse_spark),
    (engine.render_flink, engine.parse_flink),
    (engine.render_trino, engine.parse_trino),
]


@pytest.mark.parametrize("render,parse", CODECS)
@given(name=levels())
def test_rendered_name_parses_back_or_is_refused(
    render: Callable[[Levels], str], parse: Callable[[str], Levels], name: tuple[str, ...]
) -> None:
    """An engine's spelling either parses back to the same name, or the name is refused."""
    text = attempt(render, name)

    if isinstance(text, InvalidName):
        assert text.reason in ("forbidden-character", "separator-in-part", "case-folded")
    else:
        assert parse(text) == name


@given(levels(without="$"))
def test_spark_represents_every_name_without_dollar_sign(name: tuple[str, ...]) -> None:
    """Spark can represent every name without a dollar sign."""
    assert engine.parse_spark(engine.render_spark(name)) == name


@given(levels(without="\n\r"))
def test_flink_represents_every_name_without_line_breaks(name: tuple[str, ...]) -> None:
    """Flink can represent every name without line breaks."""
    assert engine.parse_flink(engine.render_flink(name)) == name


@given(levels(without="."), parts(without="$@"))
def test_trino_table_parses_back_or_is_refused(name: tuple[str, ...], table: str) -> None:
    """Trino's spelling of a table parses back to the same name, or the name is refused because case would be lost."""
    text = attempt(engine.render_trino_table, name, name=table)

    if isinstance(text, InvalidName):
        assert text.reason == "case-folded"
    else:
        assert engine.parse_trino_table(text) == (name, table)
