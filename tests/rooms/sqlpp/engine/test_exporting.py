# SPDX-License-Identifier: Apache-2.0
"""Results as file contents: JSON lines, ADM, delimited text, Parquet; and how results are divided into files."""

from __future__ import annotations

import base64
import csv
import gzip
import io
import json
from typing import Any

import pyarrow.parquet as pq
import pytest

from limnos.rooms.sqlpp.engine.exporting import export_lines
from limnos.rooms.sqlpp.language.errors import SqlppError
from limnos.rooms.sqlpp.language.evaluator import Budget
from limnos.rooms.sqlpp.language.exports import ExportFormat
from limnos.rooms.sqlpp.language.values.model import Date, DateTime, Time, Value

TYPE = "CLOSED {id: bigint, name: string?, pay: double?}"


class ExportedFile:
    """One exported file as lines."""

    def __init__(self, directory: list[str]) -> None:
        self.directory = directory
        self.data = b""
        self.objects = -1


def exported(values: list[Value], form: ExportFormat) -> tuple[list[ExportedFile], list[str]]:
    """Return the files of some values, and the texts of the warnings."""
    budget, files = Budget(), []
    for text in export_lines(values, form, budget=budget):
        line: dict[str, Any] = json.loads(text)
        if "begin" in line:
            assert all(file.objects >= 0 for file in files), "the previous file has ended"
            files.append(ExportedFile(line["begin"]))
        elif "bytes" in line:
            files[-1].data += base64.b64decode(line["bytes"])
        else:
            files[-1].objects = line["end"]
    assert all(file.objects > 0 for file in files)
    return files, [warning.text for warning in budget.warnings.values()]


def text_of(values: list[Value], form: ExportFormat) -> str:
    """Return the text of the only file."""
    ((file,), warnings) = exported(values, form)
    assert warnings == []
    return file.data.decode()


def test_json_and_adm_have_one_line_per_value() -> None:
    """JSON and ADM have one line for each value; ADM keeps types."""
    values: list[Value] = [{"id": 1, "at": Date(0)}, "x\ny"]

    assert text_of(values, ExportFormat(name="json")) == '{"id":1,"at":"1970-01-01"}\n"x\\ny"\n'
    assert text_of(values, ExportFormat(name="adm")) == '{ "id": 1, "at": date("1970-01-01") }\n"x\\ny"\n'


def test_a_packed_file_is_read_by_gzip() -> None:
    """A compressed file is readable by gzip, for any size; its bytes come in chunks."""
    values: list[Value] = [{"id": number, "text": "é" * 40} for number in range(5000)]
    ((file,), _) = exported(values, ExportFormat(name="json", compression="gzip", level=1))

    assert gzip.decompress(file.data).decode().splitlines()[4999] == json.dumps(
        values[4999], ensure_ascii=False
    ).replace(" ", "")


def test_files_end_at_a_number_of_objects_and_at_a_size() -> None:
    """A file ends at the maximum of objects or bytes, and the last file has the rest; without objects there is no
    file.
    """
    values: list[Value] = [{"id": number} for number in range(25)]

    assert [file.objects for file in exported(values, ExportFormat(name="json", objects_max=10))[0]] == [10, 10, 5]
    assert [file.objects for file in exported(values, ExportFormat(name="json", bytes_max=90))[0]] == [10, 9, 6]
    assert exported([], ExportFormat(name="csv", type=TYPE, options={"header": "true"})) == ([], [])


def test_another_directory_begins_another_file() -> None:
    """Another directory begins another file; an object without one is skipped with a warning."""
    values: list[Value] = [
        {"path": ("car/x", 1), "of": {"id": 1}},
        {"path": ("car/x", 1), "of": {"id": 2}},
        {"path": ("car", None), "of": {"id": 3}},
        {"path": (Date(0), True), "of": {"id": 4}},
    ]
    files, warnings = exported(values, ExportFormat(name="json", is_partitioned=True))

    assert [(file.directory, file.objects) for file in files] == [(["car", "x", "1"], 2), (["1970-01-01", "true"], 1)]
    assert warnings == ["ASX0064: Path expression produced a value of type 'null'. Path must be of type string"]


def test_delimited_text_quotes_fields_in_type_order() -> None:
    """Fields are quoted if necessary, NULL and MISSING have their own text, and the fields have the order of the
    type.
    """
    values: list[Value] = [
        {"pay": 1.5, "id": 1, "name": 'a"b,c'},
        {"id": 2, "name": None, "pay": 2},
        {"id": 3, "name": ""},
        {"id": 4, "name": "x\ty"},
    ]
    form = ExportFormat(name="csv", type=TYPE, options={"header": "true", "null": "NIL"})

    assert text_of(values, form) == 'id,name,pay\n1,"a""b,c",1.5\n2,NIL,2\n3,"",NIL\n4,x\ty,NIL\n'
    assert text_of(values[3:], ExportFormat(name="tsv", type=TYPE)) == '4\t"x\ty"\t\n'
    options = {"delimiter": "|", "quote": "'", "escape": "\\", "force-quote": "true", "empty-string-as-null": "true"}
    form = ExportFormat(name="csv", type=TYPE, options={**options, "null": "-", "record-delimiter": "\\r\\n"})
    assert text_of([{"id": 1, "name": "it's \\"}, {"id": 2, "name": ""}], form) == "1|'it\\'s \\\\'|-\r\n2|-|-\r\n"


def test_delimited_text_skips_mismatched_objects_with_warning() -> None:
    """Objects with a missing required field, an additional field or another type, and other values, are skipped with a
    warning each, and the last warning has their number.
    """
    values: list[Value] = [
        {"id": 1},
        {"name": "x"},
        {"id": 2, "more": 1},
        {"id": "3"},
        {"id": 4, "name": 0},
        5,
        {"id": 1 << 62},
    ]
    ((file,), warnings) = exported(values, ExportFormat(name="csv", type=TYPE))

    assert file.data.decode() == f"1,,\n{1 << 62},,\n"
    assert len(warnings) == 6
    assert warnings[-1] == "ASX1216: Record schema mismatch: COPY TO left out 5 of 7 objects"
    assert all(text.startswith("ASX1216: Record schema mismatch: ") for text in warnings)


@pytest.mark.parametrize("form", ["csv", "tsv"])
def test_exported_lines_are_read_again_as_the_same_values(form: str) -> None:
    """Texts with each special character are quoted, so that a reader of delimited text gets the same values."""
    texts = ["a\rb", "a\r\nb", "\r", "a\nb", 'a"b', '"', "a,b", "a\tb", "a\\b", " a ", "'", "plain"]
    values: list[Value] = [{"id": at, "name": text} for at, text in enumerate(texts)]
    written = text_of(values, ExportFormat(name=form, type="CLOSED {id: bigint, name: string?}"))

    rows = list(csv.reader(io.StringIO(written, newline=""), delimiter="," if form == "csv" else "\t", strict=True))

    assert rows == [[str(at), text] for at, text in enumerate(texts)]


@pytest.mark.parametrize("bits, name", [(8, "tinyint"), (16, "smallint"), (32, "integer"), (64, "bigint")])
def test_integer_within_the_range_of_a_type_is_exported(bits: int, name: str) -> None:
    """An integer of the largest type is exported as a narrower one if it is within its range, on both sides of 0."""
    least, largest = -(1 << bits - 1), (1 << bits - 1) - 1
    inside, outside = [least, -1, 0, 1, largest], [least - 1, largest + 1]
    values: list[Value] = [{"n": each} for each in [*inside, *(outside if bits < 64 else [])]]

    ((file,), warnings) = exported(values, ExportFormat(name="csv", type=f"CLOSED {{n: {name}}}"))

    assert file.data.decode().split() == list(map(str, inside))
    assert bool(warnings) is (bits < 64)


def test_dates_use_the_given_pattern() -> None:
    """Dates use the given pattern; without one they are formatted as in JSON."""
    form = ExportFormat(
        name="csv", type="CLOSED {d: date, t: time, m: datetime}", dates={"date": "DD/MMM/YYYY", "time": "hh:mm a"}
    )
    values: list[Value] = [{"d": Date(1), "t": Time(13 * 3_600_000), "m": DateTime(1)}]

    assert text_of(values, form) == "02/JAN/1970,01:00 PM,1970-01-01T00:00:00.001\n"


def test_parquet_has_columns_of_objects_or_type() -> None:
    """Columns are those of the objects, or of the type; each file is complete."""
    values: list[Value] = [{"id": 1, "at": DateTime(1), "tags": ("a",)}, {"id": 2, "of": {"x": 1.5, "t": Time(1)}}]
    ((file,), _) = exported(values, ExportFormat(name="parquet"))
    table = pq.read_table(io.BytesIO(file.data))

    assert table.column("id").to_pylist() == [1, 2]
    assert table.column("of").to_pylist()[0] is None
    assert [str(value) for value in table.column("at").to_pylist()] == ["1970-01-01 00:00:00.001000", "None"]
    ((file,), _) = exported(
        [{"id": n} for n in range(100)], ExportFormat(name="parquet", sizes={"row-group-size": 80, "page-size": 64})
    )
    assert pq.ParquetFile(io.BytesIO(file.data)).metadata.num_row_groups == 10
    form = ExportFormat(name="parquet", type="CLOSED {id: tinyint, pay: float?}", compression="zstd", objects_max=1)
    files, _ = exported([{"id": 1}, {"id": 2, "pay": 1.5}], form)
    assert [pq.read_table(io.BytesIO(file.data)).to_pylist() for file in files] == [
        [{"id": 1, "pay": None}],
        [{"id": 2, "pay": 1.5}],
    ]


@pytest.mark.parametrize(
    "values,form",
    [
        ([{"a": 1}, {"a": "x"}], ExportFormat(name="parquet")),
        ([{"a": (1, "x")}], ExportFormat(name="parquet")),
        ([{}], ExportFormat(name="parquet")),
        ([1], ExportFormat(name="parquet")),
        ([{"a": Date(10_000_000)}], ExportFormat(name="parquet")),
        ([{"id": 1, "b": 1}], ExportFormat(name="parquet", type="CLOSED {id: bigint}")),
        ([{"id": 300}], ExportFormat(name="parquet", type="CLOSED {id: tinyint}")),
    ],
)
def test_parquet_refuses_unsupported_values(values: list[Value], form: ExportFormat) -> None:
    """Parquet refuses fields of several types, objects without fields, fields that the type lacks, and values outside
    of a column's range.
    """
    with pytest.raises(SqlppError, match="Parquet writer error"):
        exported(values, form)


def test_a_parquet_file_ends_at_its_size() -> None:
    """A Parquet file ends at its maximum size for any number of objects, because the server buffers files for an object
    store.
    """
    values: list[Value] = [{"id": number, "text": "x" * 1000} for number in range(100)]
    files, _ = exported(values, ExportFormat(name="parquet", bytes_max=10_000))

    assert len(files) in range(10, 15)
    assert sum(file.objects for file in files) == 100
