# SPDX-License-Identifier: Apache-2.0
"""Objects loaded from files of each format, and refusals of other files."""

from __future__ import annotations

import gzip
import math
from datetime import UTC, date, datetime, time
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from limnos.rooms.sqlpp.engine.loading import read_files, read_objects
from limnos.rooms.sqlpp.engine.object_checks import ObjectChecker, check_objects
from limnos.rooms.sqlpp.language import SqlppError
from limnos.rooms.sqlpp.language.jobs import ExternalSource, type_of
from limnos.rooms.sqlpp.language.stored import storage_form_of_record
from limnos.rooms.sqlpp.language.values.model import (
    Bag,
    Date,
    DateTime,
    DayTimeDuration,
    Float,
    Integer,
    SmallInt,
    Time,
    TinyInt,
    Value,
)

FORM = storage_form_of_record(type_of("{ id: bigint, name: string?, born: date?, tags: {{ string }}? }"), (("id",),))
JSON_FORM = storage_form_of_record(type_of("{ id: bigint, name: string?, born: date? }"), (("id",),))
"""JSON has no multisets."""


def loaded(path: Path, format_: str, **options: str) -> list[Value]:
    """Return the objects of a path."""
    source = ExternalSource(adapter="localfs", options=(("path", path.as_uri()), ("format", format_), *options.items()))
    return list(read_files(source, JSON_FORM if format_ == "json" else FORM))


def written(folder: Path, text: str, name: str = "a.txt") -> Path:
    """Return a file with a text."""
    (folder / name).write_text(text, encoding="utf-8")
    return folder / name


def test_fields_follow_type_named_by_copy(tmp_path: Path) -> None:
    """The fields of a line are those of the type that COPY names, not of the dataset's; a wrong value is refused."""
    path = written(tmp_path, "name,n\nx,7\n,8\n")
    options = (("path", path.as_uri()), ("format", "csv"), ("header", "true"))
    source = ExternalSource(adapter="localfs", options=options, type="{ name: string?, n: int? }")

    assert list(read_objects(source, FORM)) == [{"name": "x", "n": 7}, {"name": "", "n": 8}]
    with pytest.raises(SqlppError, match="n"):
        list(read_objects(ExternalSource(adapter="localfs", options=options, type="{ n: int?, name: string? }"), FORM))


def test_json_objects_may_span_lines(tmp_path: Path) -> None:
    """JSON objects may be on one or several lines; an array gives its items; a brace in a string is text."""
    text = (
        '{"id":1,"name":"}{"}\n\n{\n "id": 2,\n "x": {"$date": [1, 2.5,'
        ' 9223372036854775808]}\n}\n[{"id":3},\n{"id":4}]\n'
    )

    assert loaded(written(tmp_path, text), "json") == [
        {"id": 1, "name": "}{"},
        {"id": 2, "x": {"$date": (1, 2.5, 2.0**63)}},
        {"id": 3},
        {"id": 4},
    ]


def test_adm_values_are_read(tmp_path: Path) -> None:
    """ADM is read with values that JSON lacks."""
    text = '{ "id": 1, "born": date("1970-01-02"), "tags": {{ "x", "y" }} }\n{ "id": 2,\n  "t": time("00:00:01") }\n'

    assert loaded(written(tmp_path, text), "adm") == [
        {"id": 1, "born": Date(1), "tags": Bag(("x", "y"))},
        {"id": 2, "t": Time(1000)},
    ]


def test_delimited_text_is_read_as_the_declared_types(tmp_path: Path) -> None:
    """Fields are in the declared order, with quotes, a header or another delimiter; a directory stands for its files,
    including compressed ones.
    """
    written(tmp_path, 'id,name\n1,"a,b",1970-01-02\n2,,\n', "a.csv")
    with gzip.open(tmp_path / "b.csv.gz", "wt") as packed:
        packed.write("id,name\n3,x\n")
    written(tmp_path, "nothing", ".hidden")

    checker = ObjectChecker(FORM, from_file=True)
    objects = check_objects(checker, loaded(tmp_path, "csv", header="true"), replaces=False)

    assert objects == [{"id": 1, "name": "a,b", "born": Date(1)}, {"id": 2, "name": ""}, {"id": 3, "name": "x"}]
    assert loaded(written(tmp_path, "1|x", "c"), "delimited-text", delimiter="|") == [{"id": "1", "name": "x"}]


def test_delimited_text_ignores_fields_that_the_type_lacks(tmp_path: Path) -> None:
    """Additional fields at the end of a line are ignored, because TPC-H's generator ends lines with the delimiter.
    Empty lines are skipped.
    """
    text = "1|wren|1970-01-02|\n\n2|owl|1970-01-02|x|y|\n"

    assert loaded(written(tmp_path, text), "delimited-text", delimiter="|") == [
        {"id": "1", "name": "wren", "born": "1970-01-02"},
        {"id": "2", "name": "owl", "born": "1970-01-02", "tags": "x"},
    ]


def test_null_option_sets_text_of_null(tmp_path: Path) -> None:
    """The given text is NULL in an optional field; in other fields an empty string remains one."""
    form = storage_form_of_record(type_of("{ id: bigint, a: string, b: string?, c: double? }"), (("id",),))

    def read(**options: str) -> list[Value]:
        path = written(tmp_path, "1,,,\n2,-,-,-\n").as_uri()
        return list(
            read_files(
                ExternalSource(adapter="localfs", options=(("path", path), ("format", "csv"), *options.items())), form
            )
        )

    assert read(null="")[0] == {"id": "1", "a": "", "b": None, "c": None}
    assert read(null="-")[1] == {"id": "2", "a": "-", "b": None, "c": None}
    assert read()[0] == {"id": "1", "a": "", "b": ""}


def test_delimited_text_has_no_field_for_generated_key(tmp_path: Path) -> None:
    """A generated key has no field in the file; the other fields keep their order."""
    form = storage_form_of_record(type_of("{ id: uuid, a: string }"), (("id",),), autogenerated=True)
    source = ExternalSource(
        adapter="localfs", options=(("path", written(tmp_path, "x\ny").as_uri()), ("format", "csv"))
    )

    assert list(read_files(source, form)) == [{"a": "x"}, {"a": "y"}]


def test_quote_character_0_disables_quoting(tmp_path: Path) -> None:
    """With the character 0 as the quote, a quotation mark is text; lines may end with CR alone."""
    text = 'id\tname\r1\t"a\r2\tb"\r'

    assert loaded(written(tmp_path, text), "tsv", header="true", quote="\0") == [
        {"id": "1", "name": '"a'},
        {"id": "2", "name": 'b"'},
    ]


def test_escape_character_may_differ_from_quote(tmp_path: Path) -> None:
    """The escape character precedes a quote or itself; then a doubled quote is not an escape."""
    text = '1,"It says \\"x, y\\""\n2,"a\\\\"\n'

    assert loaded(written(tmp_path, text), "csv", escape="\\") == [
        {"id": "1", "name": 'It says "x, y"'},
        {"id": "2", "name": "a\\"},
    ]


def test_tab_separated_text_has_no_quoting_by_default(tmp_path: Path) -> None:
    """In a file with tabs a quote is part of its field; the option sets another quote, or none."""
    text = '1\t"x\n2\ty"z"\n'

    assert loaded(written(tmp_path, text), "tsv") == [{"id": "1", "name": '"x'}, {"id": "2", "name": 'y"z"'}]
    assert loaded(written(tmp_path, '1, "x\n'), "csv", quote="None") == [{"id": "1", "name": ' "x'}]


def test_adm_suffixes_and_constructors_are_read(tmp_path: Path) -> None:
    """Suffixes set the width of numbers, constructors are functions, several objects may share a line."""
    text = """{"a":[1i8,-2i16,3i32,4i64,5],"b":[1.5f,2d,.5,1e3,-INF],"u":uuid("00000000-0000-0000-0000-000000000001")}
    {'x':'it\\'s',"y":missing} {"d":day-time-duration("P1D"),"s":"a\\u0041\\n"},{"n":null,"t":int64("7")};"""

    first, second, third, fourth = loaded(written(tmp_path, text), "adm")

    assert list(map(type, first["a"])) == [TinyInt, SmallInt, Integer, int, int]
    assert first["a"] == (1, -2, 3, 4, 5)
    assert first["b"] == (1.5, 2.0, 0.5, 1000.0, -math.inf)
    assert type(first["b"][0]) is Float
    assert (second, third["s"], fourth) == ({"x": "it's"}, "aA\n", {"n": None, "t": 7})
    assert third["d"] == DayTimeDuration(86_400_000)


def test_parquet_rows_have_column_types(tmp_path: Path) -> None:
    """Rows of Parquet files have the types of their columns."""
    table = pa.table(
        {
            "id": [1, 2],
            "born": [date(1970, 1, 2), None],
            "at": [datetime(1970, 1, 1, 0, 0, 1, 5000, tzinfo=UTC), None],
            "t": [time(0, 0, 1), None],
            "d": [Decimal("1.25"), None],
            "l": [[{"x": 1}], None],
        }
    )
    pq.write_table(table, tmp_path / "a.parquet")

    assert loaded(tmp_path / "a.parquet", "parquet") == [
        {"id": 1, "born": Date(1), "at": DateTime(1005), "t": Time(1000), "d": 1.25, "l": ({"x": 1},)},
        {"id": 2},
    ]


def test_integers_beyond_64_bits_become_doubles(tmp_path: Path) -> None:
    """Integers of a Parquet file that a bigint cannot hold become doubles; the largest bigint stays an integer."""
    table = pa.table({"id": [1, 2], "n": pa.array([(1 << 63) - 1, 1 << 63], pa.uint64()), "low": [-(1 << 63), None]})
    pq.write_table(table, tmp_path / "a.parquet")

    first, second = loaded(tmp_path / "a.parquet", "parquet")

    assert [(type(each["n"]), each["n"]) for each in (first, second)] == [(int, (1 << 63) - 1), (float, 2.0**63)]
    assert (type(first["low"]), first["low"]) == (int, -(1 << 63))


def test_hidden_files_of_a_directory_are_not_loaded(tmp_path: Path) -> None:
    """Files and directories whose names begin with `.` or `_` are not loaded from a directory, at any depth; they are
    marks and temporary files of the programs that write it.
    """
    visible_names = ("a.json", "part=1/b.json", "part=1/more/c.json")
    hidden = ("_SUCCESS", ".a.json.crc", "_temporary/0/d.json", "part=1/_e.json", ".staging/f.json")
    for at, name in enumerate((*visible_names, *hidden)):
        (tmp_path / "d" / name).parent.mkdir(parents=True, exist_ok=True)
        written(tmp_path / "d", f'{{"id": {at}}}', name)
    (tmp_path / "_own").mkdir()
    written(tmp_path / "_own", '{"id": 9}', "a.json")

    assert sorted(each["id"] for each in loaded(tmp_path / "d", "json")) == [0, 1, 2]
    assert loaded(tmp_path / "_own", "json") == [{"id": 9}]
    assert loaded(tmp_path / "d" / "_SUCCESS", "json") == [{"id": 3}]


@pytest.mark.parametrize(
    "text, format_, options, message",
    [
        ('{"id":1}\n{"id":', "json", {}, "ASX3021.*a.txt: the record that begins in line 2"),
        ("{ 'id': unknown_function() }", "adm", {}, "ASX3021.*line 1"),
        ("{ 'id': t }", "adm", {}, "ASX3021"),
        ('1,"a"b,', "csv", {}, "ASX3021.*line 1"),
        ('1, "a,b",', "csv", {}, "ASX3021.*line 1: a quote of field name"),
        ('1,"a', "csv", {}, "ASX3021.*line 1"),
        ("1", "csv", {"header": "perhaps"}, "ASX1079.*'header'"),
        ('{ "id": 300i8 }', "adm", {}, "ASX3021.*line 1"),
        ('{ "id": date("no") }', "adm", {}, "ASX3021.*line 1"),
        ('{ "id": 1 } x', "adm", {}, "ASX3021.*line 1"),
        ("[" * 1000 + "]" * 1000, "adm", {}, "ASX3021.*line 1"),
        ("1;2", "csv", {"delimiter": ";;"}, "ASX3050"),
        ("PAR1", "parquet", {}, "ASX3021.*not Parquet"),
        ("x", "xml", {}, "ASX3026.*xml"),
        ("[" * 100_000, "json", {}, "ASX3021"),
    ],
)
def test_error_for_invalid_file_names_file_and_line(
    tmp_path: Path, text: str, format_: str, options: dict[str, str], message: str
) -> None:
    """The error for an invalid file names the file and the line, and no object is returned."""
    with pytest.raises(SqlppError, match=message):
        loaded(written(tmp_path, text), format_, **options)


def test_missing_files_and_binary_content_are_refused(tmp_path: Path) -> None:
    """A path without files, and bytes that are not text, are refused."""
    with pytest.raises(SqlppError, match=r"ASX3077.*nothing: path not found"):
        loaded(tmp_path / "nothing", "json")
    (tmp_path / "b").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(SqlppError, match=r"ASX3021.*not UTF-8"):
        loaded(tmp_path / "b", "csv")


def test_link_out_of_readable_directories_is_refused(tmp_path: Path) -> None:
    """The target of a link must be in a directory that statements may read; a link within it is followed."""
    roots, tables = tmp_path / "roots", tmp_path / "roots" / "tables"
    tables.mkdir(parents=True)
    written(tmp_path, '{"id":1}', "secret.json")
    written(tables, '{"id":2}', "table.json")
    written(roots, '{"id":3}', "mine.json")
    for name, target in (("out", tmp_path / "secret.json"), ("in", tables / "table.json"), ("ok", roots / "mine.json")):
        (roots / name).symlink_to(target)

    def linked(name: str) -> list[Value]:
        options = (("path", (roots / name).as_uri()), ("format", "json"))
        return list(
            read_files(
                ExternalSource(adapter="localfs", options=options, within=(roots.as_uri(),), outside=(str(tables),)),
                JSON_FORM,
            )
        )

    assert linked("ok") == [{"id": 3}]
    for name in ("out", "in", "."):
        with pytest.raises(SqlppError, match="a link to a file outside of"):
            linked(name)
