# SPDX-License-Identifier: Apache-2.0
"""Previews of the beginning of files: rows of each format, texts, other files, limits, and no execution of content."""

from __future__ import annotations

import io
import json
import tracemalloc

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from limnos.formats.file_heads import TEXT_BYTES_MAX, TEXT_CHARACTERS_MAX, FileContent, HeadLimits, file_content

LIMITS = HeadLimits(rows_max=3, columns_max=2, bytes_max=1 << 20)


class OpenedBytes(io.BytesIO):
    """A file in memory that counts the bytes read."""

    taken = 0

    def read(self, size: int | None = -1) -> bytes:
        """Read up to `size` bytes."""
        data = super().read(size)
        self.taken += len(data)
        return data

    def size(self) -> int:
        """Return the length."""
        return len(self.getbuffer())


def content(name: str, data: bytes, limits: HeadLimits = LIMITS) -> FileContent:
    """Return the preview of a file."""
    return file_content(name, OpenedBytes(data), limits=limits)


@pytest.mark.parametrize(
    "name, data",
    [
        ("a.csv", b'\xef\xbb\xbfid,place\n1,Oslo\n2,"Ro,me"\n'),
        ("a.CSV", b"id;place\r\n1;Oslo\r\n2;Ro,me\r\n"),
        ("a.tsv", b"id\tplace\n1\tOslo\n2\tRo,me\n"),
        ("a.jsonl", b'{"id": "1", "place": "Oslo"}\n\n{"place": "Ro,me", "id": "2"}\n'),
        ("a.json", b'[{"id": "1", "place": "Oslo"}, {"id": "2", "place": "Ro,me"}]'),
    ],
)
def test_column_names_are_read_from_delimited_and_json_files(name: str, data: bytes) -> None:
    """The names of columns are the first line of a delimited file, and the keys of JSON objects."""
    preview = content(name, data)

    assert [column[0] for column in preview.columns] == ["id", "place"]
    assert preview.rows == [["1", "Oslo"], ["2", "Ro,me"]]
    assert (preview.is_complete, preview.text, preview.size) == (True, None, len(data))


def test_preview_reports_omitted_rows_and_columns() -> None:
    """Rows and columns beyond the limits are omitted, and the preview says so."""
    data = b"a,b,c\n" + b"1,2,3\n" * 4

    preview = content("x.csv", data)

    assert ([name for name, _ in preview.columns], preview.columns_left_out) == (["a", "b"], 1)
    assert (preview.rows, preview.is_complete) == ([["1", "2"]] * 3, False)
    assert content("x.csv", data, HeadLimits(3, 2, 10)).rows == [["1", "2"]]  # ten bytes as JSON


def test_uneven_rows_are_filled_with_nulls() -> None:
    """Missing cells are null, and columns beyond those of the first line get a number as name."""
    preview = content("x.csv", b"a\n1,2\n3\n")

    assert [name for name, _ in preview.columns] == ["a", "column 2"]
    assert preview.rows == [["1", "2"], ["3", None]]


WIDE = ",".join(f"k{number}" for number in range(2_000))


@pytest.mark.parametrize(
    "name, data",
    [
        ("x.csv", f"{WIDE}\n" + "1\n" * 2_000),
        ("x.jsonl", "".join(f'{{"k{number}": 1}}\n' for number in range(2_000))),
        ("x.json", "[" + ",".join(f'{{"k{number}": 1}}' for number in range(2_000)) + "]"),
        ("y.json", "[" * 300 + "1" + ",1" * 60_000 + "]" * 300),
    ],
)
def test_wide_or_nested_text_needs_little_memory(name: str, data: str) -> None:
    """A text with very many columns, or with deeply nested values, needs little memory, because only the shown rows are
    built.
    """
    text = data.encode()
    content(name, text)

    tracemalloc.start()
    preview = content(name, text)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert len(preview.rows) == (0 if name == "y.json" else 3)
    assert peak < 10_000_000


def test_rows_that_are_nested_too_deeply_are_text() -> None:
    """A file with rows that are nested too deeply for cells is shown as text."""
    data = b'[{"a": ' + b"[" * 900 + b"]" * 900 + b"}]"

    preview = content("x.json", data)

    assert (preview.rows, preview.columns) == ([], [])
    assert preview.text is not None
    assert "".join(preview.text.split()) == "".join(data.decode().split())[: len("".join(preview.text.split()))]


def test_only_the_beginning_of_a_long_text_is_read() -> None:
    """Only the beginning of a long text is read, and the row that is cut at its end is omitted."""
    file = OpenedBytes(b"id,text\n" + b"".join(b"%d,xxxxxxxxxxxxxxxxxxxxxxx\n" % each for each in range(20_000)))

    preview = file_content("x.csv", file, limits=HeadLimits(100_000, 2, 1 << 30))

    assert (preview.is_complete, file.taken) == (False, TEXT_BYTES_MAX)
    assert {row[1] for row in preview.rows} == {"x" * 23}
    assert [row[0] for row in preview.rows] == [str(each) for each in range(len(preview.rows))]


@pytest.mark.parametrize(
    "name, data",
    [
        ("x.html", b"<script>alert(1)</script>"),
        ("x.svg", b"<svg onload='x'/>"),
        ("x", "größer\n\x1b[31mred".encode()),
        ("x.jsonl", b'{"a": 1}\n{"a": '),
        ("x.jsonl", b"[1]\n[2]\n"),
        ("x.json", b"{"),
        ("x.json", b"[" * 100_000),
        ("x.csv", b"a," + b"b" * 200_000),
        ("x.txt", b"latin \xe9t\xe9"),
        ("empty.txt", b""),
    ],
)
def test_file_without_rows_is_shown_as_text(name: str, data: bytes) -> None:
    """A file without rows, or whose content does not match its name, is shown as text."""
    preview = content(name, data)

    assert (preview.rows, preview.columns) == ([], [])
    assert preview.text == data.decode("utf-8", "replace")[:TEXT_CHARACTERS_MAX]
    assert preview.is_complete is (len(data) <= TEXT_CHARACTERS_MAX)


def test_json_documents_are_indented() -> None:
    """An object, and a list of values that are not objects, are shown as indented JSON."""
    assert content("x.json", b'{"a":[1]}').text == json.dumps({"a": [1]}, indent=2)
    assert content("x.json", b"[1,2]").text == "[\n  1,\n  2\n]"


@pytest.mark.parametrize("data", [b"\x89PNG\r\n\x1a\n\x00\x00", b"GIF\x01", b"PK\x03\x04"])
def test_binary_files_have_no_content(data: bytes) -> None:
    """Binary files have neither rows nor text."""
    preview = content("picture.txt", data)

    assert (preview.rows, preview.text, preview.is_complete, preview.size) == ([], None, False, len(data))


def test_parquet_preview_has_arrow_types(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parquet columns have Arrow's types. A large file is not read completely. A damaged file fails."""
    sink = io.BytesIO()
    table = pa.table({"id": range(100_000), "vector": [[0.5] * 3] * 100_000, "third": ["x" * 50] * 100_000})
    pq.write_table(table, sink, row_group_size=1_000)
    file = OpenedBytes(sink.getvalue())

    preview = file_content("x.parquet", file, limits=LIMITS)

    assert preview.columns == [("id", "int64"), ("vector", "list<element: double>")]
    assert (preview.rows, preview.is_complete, preview.columns_left_out) == (
        [[0, [0.5] * 3], [1, [0.5] * 3], [2, [0.5] * 3]],
        False,
        1,
    )
    assert file.taken < file.size() / 2
    with pytest.raises(pa.ArrowInvalid):
        content("x.parquet", b"no parquet at all")
