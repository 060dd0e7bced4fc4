# SPDX-License-Identifier: Apache-2.0
"""Tables of MySQL as values: types in both directions, defaults of MySQL and MariaDB, and changes as one statement."""

from __future__ import annotations

import pytest

from limnos.formats.gravitino import tables as gravitino_tables
from limnos.model.errors import BadRequest, UnsupportedOperation
from limnos.rooms.connectors.sources.mysql_states import state_of, text_of
from limnos.rooms.connectors.sources.mysql_tables import MysqlColumn, MysqlTableDraft, keys_json
from limnos.rooms.connectors.sources.mysql_types import default_json, default_sql, type_json, type_of

PLAIN = {
    "boolean": "tinyint(1)",
    "byte": "tinyint",
    "short": "smallint",
    "integer": "int",
    "long": "bigint",
    "float": "float",
    "double": "double",
    "long unsigned": "bigint unsigned",
    "string": "longtext",
    "date": "date",
    "time": "time",
    "time(6)": "time(6)",
    "timestamp": "datetime",
    "timestamp(3)": "datetime(3)",
    "timestamp_tz(3)": "timestamp(3)",
    "binary": "longblob",
    "decimal(38,30)": "decimal(38,30)",
    "char(255)": "char(255)",
    "varchar(65535)": "varchar(65535)",
    "fixed(16)": "binary(16)",
}


@pytest.mark.parametrize("ours, theirs", PLAIN.items())
def test_plain_types_survive_the_mysql_round_trip(ours: str, theirs: str) -> None:
    """Each plain type has the server's word, and survives the conversion back."""
    assert (type_of(ours, column="c"), type_json(theirs)) == (theirs, ours)


@pytest.mark.parametrize(
    "theirs, ours",
    [
        ("int(11)", "integer"),
        ("bigint(20) unsigned", "long unsigned"),
        ("bit(1)", "boolean"),
        ("mediumtext", "string"),
        ("blob", "binary"),
    ],
)
def test_display_widths_are_ignored(theirs: str, ours: str) -> None:
    """Display widths of numbers are ignored, and sizes of long texts are omitted."""
    assert type_json(theirs) == ours


@pytest.mark.parametrize(
    "text",
    ["enum('X','y')", "decimal(40,2)", "int(5) unsigned zerofill", "tinytext", "geometry", "decimal(10,2) unsigned"],
)
def test_unknown_mysql_type_is_shown_unchanged(text: str) -> None:
    """A type without a word is shown unchanged, in its case, because enum values are case-sensitive."""
    assert type_json(text) == {"type": "external", "catalogString": text}


WRONG = (
    "decimal(39,2)",
    "decimal(4,5)",
    "char(256)",
    "fixed(300)",
    "timestamp(7)",
    "varchar",
    "uuid",
    "enum('a')",
    "int, b int",
)


@pytest.mark.parametrize(
    "kind",
    [*WRONG, {"type": "list", "elementType": "long"}, {"type": "external", "catalogString": "enum('a')"}, None, 7],
)
def test_unknown_types_are_refused_in_statements(kind: object) -> None:
    """Only known types get into a statement; all others are refused."""
    with pytest.raises(BadRequest):
        type_of(kind, column="c")


@pytest.mark.parametrize(
    "text, kind, extra, quoted, sql",
    [
        ("it's", "varchar(9)", "", False, "'it''s'"),
        ("7", "int", "", False, "'7'"),
        (None, "int", "", False, None),
        ("NULL", "varchar(9)", "", False, "'NULL'"),
        ("CURRENT_TIMESTAMP(3)", "datetime(3)", "DEFAULT_GENERATED", False, "CURRENT_TIMESTAMP(3)"),
        ("(1 + 1)", "int", "DEFAULT_GENERATED", False, "((1 + 1))"),
        ("b'101'", "bit(3)", "", False, "b'101'"),
        ("'it''s \\\\ 5%'", "varchar(9)", "", True, "'it''s \\ 5%'"),
        ("NULL", "int", "", True, None),
        ("'a\\nb\\0'", "varchar(9)", "", True, "'a\nb\0'"),
        ("(1 + 1)", "int", "", True, "(1 + 1)"),
        ("7", "int", "", True, "7"),
    ],
)
def test_defaults_are_repeated_unchanged(
    text: str | None, kind: str, extra: str, quoted: bool, sql: str | None
) -> None:
    """Defaults are repeated unchanged: MySQL returns strings unquoted, MariaDB as SQL with backslashes."""
    assert default_sql(text, kind=kind, extra=extra, quoted=quoted) == sql


def test_defaults_are_decoded() -> None:
    """Defaults are literals, the current time, or expressions."""
    assert default_json("'a''b'", "string") == {"type": "literal", "dataType": "string", "value": "a'b"}
    assert default_json("'1'", "boolean") == {"type": "literal", "dataType": "boolean", "value": "true"}
    assert default_json("-1.5", "double") == {"type": "literal", "dataType": "double", "value": "-1.5"}
    assert default_json("(uuid())", "string") == {"type": "unparsed", "unparsedExpression": "(uuid())"}
    assert [default_json(each, "string") for each in (None, "NULL")] == [None, None]


def _draft() -> MysqlTableDraft:
    return MysqlTableDraft(
        columns=[
            MysqlColumn(name="a", kind="int", was="a"),
            MysqlColumn(name="b", kind="varchar(9)", collation="latin1_bin", was="b"),
            MysqlColumn(name="c", kind="int", extra="STORED GENERATED", was="c"),
        ],
        keys=["k"],
    )


def test_changes_of_a_column_are_merged_into_one_statement() -> None:
    """A column that is changed twice occurs once in the statement; an unchanged one does not occur."""
    draft = _draft()
    draft.carry_out(
        [
            gravitino_tables.RenameColumn(("b",), "x`y"),
            gravitino_tables.UpdateColumnComment(("x`y",), "it's"),
            gravitino_tables.UpdateColumnNullability(("x`y",), False),
            gravitino_tables.AddColumn(field_name=("n",), type="long", position="first"),
            gravitino_tables.DeleteColumn(("c",)),
            gravitino_tables.DeleteTableIndex("k"),
            gravitino_tables.UpdateTableComment("t"),
        ]
    )

    assert (
        draft.statement("s", "t`")
        == "ALTER TABLE `s`.`t``` DROP COLUMN `c`, CHANGE COLUMN `b` `x``y` varchar(9) COLLATE latin1_bin NOT NULL"
        " COMMENT 'it''s', ADD COLUMN `n` bigint NULL FIRST, DROP INDEX `k`, COMMENT='t'"
    )


def test_changes_without_effect_send_no_statement() -> None:
    """Without a change, or for a change without effect, there is no statement."""
    draft = _draft()
    draft.carry_out(
        [
            gravitino_tables.UpdateColumnNullability(("a",), True),
            gravitino_tables.DeleteColumn(("none",), if_exists=True),
        ]
    )

    assert draft.statement("s", "t") is None


def test_altering_a_column_with_an_expression_is_refused() -> None:
    """A column with an expression can be dropped but not altered, because its expression would be lost."""
    draft = _draft()
    draft.carry_out([gravitino_tables.UpdateColumnComment(("c",), "x")])

    with pytest.raises(UnsupportedOperation):
        draft.statement("s", "t")


@pytest.mark.parametrize(
    "changes",
    [
        [gravitino_tables.UpdateColumnPosition(("a",), {"after": "a"})],
        [gravitino_tables.UpdateColumnPosition(("a",), "first"), gravitino_tables.RenameColumn(("a",), "z")],
        [gravitino_tables.UpdateColumnPosition(("a",), {"after": "b"}), gravitino_tables.RenameColumn(("b",), "z")],
        [gravitino_tables.AddColumn(field_name=("n",), type="long"), gravitino_tables.DeleteColumn(("n",))],
        [gravitino_tables.UpdateColumnPosition(("a",), "first"), gravitino_tables.DeleteColumn(("a",))],
        [gravitino_tables.RenameColumn(("a",), "B")],
        [gravitino_tables.DeleteTableIndex("none")],
    ],
)
def test_changes_beyond_one_statement_are_refused(changes: list[gravitino_tables.TableChange]) -> None:
    """Changes that one statement cannot make are refused in advance, with a message."""
    with pytest.raises(BadRequest):
        _draft().carry_out(changes)


def test_primary_key_is_first_and_prefix_keys_are_omitted() -> None:
    """The primary key comes first; keys over prefixes of columns or expressions are omitted."""
    rows = [("k", "a", None), ("k", "b", None), ("p", "a", 10), ("PRIMARY", "a", None)]
    assert [(each["name"], each["indexType"], each["fieldNames"]) for each in keys_json(rows)] == [
        ("PRIMARY", "PRIMARY_KEY", [["a"]]),
        ("k", "UNIQUE_KEY", [["a"], ["b"]]),
    ]


class _Refusal(Exception):
    sqlstate = "HY000"


@pytest.mark.parametrize(
    "code, state", [(1050, "42P07"), (1142, "42501"), (1045, "28000"), (1067, "42000"), (1021, "HY000")]
)
def test_error_numbers_override_sql_states(code: int, state: str) -> None:
    """Error numbers are more specific than SQL states."""
    error = _Refusal(code, "words")

    assert (state_of(error), text_of(error)) == (state, "words")
    assert (state_of(None), text_of(ValueError("x"))) == ("", "x")
