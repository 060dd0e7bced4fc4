# SPDX-License-Identifier: Apache-2.0
"""Delimited text that is read as columns has the same rows as when it is read field by field, or is left to that
reader.
"""

from __future__ import annotations

import io

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from limnos.rooms.sqlpp.engine import delimited_columns
from limnos.rooms.sqlpp.engine.arrow import table_of
from limnos.rooms.sqlpp.engine.delimited_columns import IrregularText, read_columns
from limnos.rooms.sqlpp.engine.delimited_text import MalformedLine, read_lines, text_options
from limnos.rooms.sqlpp.engine.object_checks import ObjectChecker
from limnos.rooms.sqlpp.language import SqlppError
from limnos.rooms.sqlpp.language.jobs import type_of
from limnos.rooms.sqlpp.language.stored import StorageForm, storage_form_of_record


def form(type_: str, *keys: str) -> StorageForm:
    """A dataset's type."""
    return storage_form_of_record(type_of(type_), tuple((key,) for key in keys))


FORM = form("closed { id: bigint, name: string, day: date, price: double, n: integer }", "id")
OPEN_FORM = form("{ id: bigint, n: integer?, d: date? }", "id")


def by_columns(text: str, form: StorageForm, **options: str) -> pa.Table:
    """Return the rows of a text, read as columns."""
    tables = list(read_columns(io.BytesIO(text.encode()), form, options=text_options(options)))
    return pa.concat_tables(tables) if tables else table_of(form, [])


def by_fields(text: str, form: StorageForm, **options: str) -> pa.Table:
    """Return the rows of a text, read field by field."""
    check = ObjectChecker(form, from_file=True).check
    lines = io.StringIO(text, newline="")
    return table_of(form, [check(value) for value in read_lines(lines, form, options=options)])


@pytest.mark.parametrize(
    "text, options",
    [
        ("1|wren|1970-01-02|1.5|7|\n-2||1996-02-29|-0|-7|\n", {"delimiter": "|"}),
        ("1,a,2000-01-01,1,1\r\n2,b c,0001-01-01,0.1,2", {}),
        ("x,y\n\n1, a,2000-01-01,123456789.987654321,1\n\n", {"header": "true"}),
        ("\n\nx,y\n1,a,2000-01-01,1,1\n", {"header": "true"}),
        ("\ufeff1;ä;2000-12-31;3;4\n", {"delimiter": ";"}),
        ("", {}),
    ],
)
def test_plain_lines_are_read_as_columns(text: str, options: dict[str, str]) -> None:
    """Trailing delimiters, empty strings, line ends of two kinds, empty lines, a header, a byte order mark."""
    expected = by_fields(text.removeprefix("\ufeff"), FORM, **options)

    assert by_columns(text, FORM, **options).equals(expected)
    assert expected.num_rows == sum(line[:2].strip("\ufeff;,|").lstrip("-").isdigit() for line in text.splitlines())


def test_an_empty_text_is_missing_in_an_optional_field() -> None:
    """An empty optional field is null in its column, and there is no open part."""
    text = "1,,\n2,5,1970-01-01\n"

    assert by_columns(text, OPEN_FORM).equals(by_fields(text, OPEN_FORM))
    assert by_columns(text, OPEN_FORM)["n"].to_pylist() == [None, 5]


@pytest.mark.parametrize(
    "line",
    [
        '1,"a,b",2000-01-01,1,1',
        "1,a,2000-02-30,1,1",
        "1,a,20000101,1,1",
        "1i64,a,2000-01-01,1,1",
        " 1,a,2000-01-01,1,1",
        "1,a,2000-01-01,1e3,1",
        "1,a,2000-01-01,INF,1",
        "1,a,2000-01-01,1,99999999999",
        "1,a,2000-01-01,1",
        ",a,2000-01-01,1,1",
        "0x1F,a,2000-01-01,1,1",
        "1,a\rb,2000-01-01,1,1",
        "+1,a,2000-01-01,1,1",
        "1,a,2000-01-01,1.,1",
    ],
)
def test_irregular_lines_are_left_to_the_field_reader(line: str) -> None:
    """Lines that Arrow parses differently, or not at all, are left to the reader of single fields."""
    with pytest.raises(IrregularText):
        by_columns(f"{line}\n", FORM)


def test_null_text_and_other_types_are_left_to_field_reader() -> None:
    """A text for NULL, other types, and a generated key are left to the reader of single fields."""
    with pytest.raises(IrregularText):
        by_columns("1,a,2000-01-01,1,1\n", FORM, null="-")
    with pytest.raises(IrregularText):
        by_columns("1,true\n", form("{ id: bigint, b: boolean }", "id"))


def test_rows_before_an_irregular_block_are_given(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows before an irregular line are returned in blocks that end at a line end."""
    monkeypatch.setattr(delimited_columns, "BLOCK_BYTES", 48)
    plain = [f"{number},n,2000-01-01,1,1\n" for number in range(10)]
    tables = []

    with pytest.raises(IrregularText):
        tables.extend(
            read_columns(
                io.BytesIO("".join([*plain, '9,"",2000-01-01,1,1\n']).encode()), FORM, options=text_options({})
            )
        )

    ids = pa.concat_tables(tables)["id"].to_pylist()
    assert len(tables) > 1
    assert ids == list(range(len(ids)))


CELLS = st.text(st.sampled_from('0123456789-.eE+, \n\r"ax'), max_size=8) | st.sampled_from(
    ["1970-01-01", "2024-02-29", "-5", "0.25", "", "007", "1e5"]
)


@given(st.lists(st.lists(CELLS, min_size=4, max_size=6), max_size=4))
def test_random_texts_read_equally_by_columns_and_fields(rows: list[list[str]]) -> None:
    """For random texts, the rows read as columns equal those read field by field."""
    text = "\n".join(",".join(["1", *row]) for row in rows)
    try:
        table = by_columns(text, FORM)
    except IrregularText:
        return
    try:
        expected = by_fields(text, FORM)
    except (SqlppError, MalformedLine) as error:
        raise AssertionError(f"read as columns: {text!r}") from error

    assert table.equals(expected), text
