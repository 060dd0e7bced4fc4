"""Objects from files of each format, and files that are not of theirs."""

from __future__ import annotations

import gzip
from datetime import UTC, date, datetime, time
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from limnos.engine.loading import read_files
from limnos.engine.writing import check_objects
from limnos.sqlpp import SqlppError
from limnos.sqlpp.jobs import ExternalSource, type_of
from limnos.sqlpp.stored import storage_form_of_record
from limnos.sqlpp.values.model import Bag, Date, DateTime, Time, Value

FORM = storage_form_of_record(type_of("{ id: bigint, name: string?, born: date?, tags: {{ string }}? }"), (("id",),))


def loaded(path: Path, format_: str, **options: str) -> list[Value]:
    """The objects of a path."""
    source = ExternalSource("localfs", (("path", path.as_uri()), ("format", format_), *options.items()))
    return list(read_files(source, FORM))


def written(folder: Path, text: str, name: str = "a.txt") -> Path:
    """A file with a text."""
    (folder / name).write_text(text, encoding="utf-8")
    return folder / name


def test_json_on_lines_and_over_several(tmp_path: Path) -> None:
    """One object after the other, however they are laid out; an array is its items; a brace in a string is text."""
    text = '{"id":1,"name":"}{"}\n\n{\n "id": 2,\n "x": {"$date": [1, 2.5, 9223372036854775808]}\n}\n[{"id":3},\n{"id":4}]\n'

    assert loaded(written(tmp_path, text), "json") == [
        {"id": 1, "name": "}{"},
        {"id": 2, "x": {"$date": (1, 2.5, 2.0**63)}},
        {"id": 3},
        {"id": 4},
    ]


def test_adm(tmp_path: Path) -> None:
    """AsterixDB's own text, with values that JSON lacks."""
    text = '{ "id": 1, "born": date("1970-01-02"), "tags": {{ "x", "y" }} }\n{ "id": 2,\n  "t": time("00:00:01") }\n'

    assert loaded(written(tmp_path, text), "adm") == [
        {"id": 1, "born": Date(1), "tags": Bag(("x", "y"))},
        {"id": 2, "t": Time(1000)},
    ]


def test_delimited_text_is_read_as_the_declared_types(tmp_path: Path) -> None:
    """Fields in the declared order, quotes, a header, another delimiter; a directory is its files, packed ones too."""
    written(tmp_path, 'id,name\n1,"a,b",1970-01-02\n2,,\n', "a.csv")
    with gzip.open(tmp_path / "b.csv.gz", "wt") as packed:
        packed.write("id,name\n3,x\n")
    written(tmp_path, "nothing", ".hidden")

    found = check_objects(FORM, loaded(tmp_path, "csv", header="true"), replaces=False, lenient=True)

    assert found == [{"id": 1, "name": "a,b", "born": Date(1)}, {"id": 2}, {"id": 3, "name": "x"}]
    assert loaded(written(tmp_path, "1|x", "c"), "delimited-text", delimiter="|") == [{"id": "1", "name": "x"}]


def test_parquet(tmp_path: Path) -> None:
    """Rows with the types of their columns."""
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


@pytest.mark.parametrize(
    "text, format_, options, told",
    [
        ('{"id":1}\n{"id":', "json", {}, "ASX3021.*a.txt: what begins in line 2"),
        ("{ 'id': unknown_function() }", "adm", {}, "ASX3021.*line 1"),
        ("{ 'id': t }", "adm", {}, "ASX3021"),
        ("1,2,3,4,5", "csv", {}, "ASX3021.*5 fields, the type 4"),
        ("1;2", "csv", {"delimiter": ";;"}, "ASX3050"),
        ("PAR1", "parquet", {}, "ASX3021.*no Parquet"),
        ("x", "xml", {}, "ASX3026.*xml"),
        ("[" * 100_000, "json", {}, "ASX3021"),
    ],
)
def test_what_is_not_of_its_format(tmp_path: Path, text: str, format_: str, options: dict[str, str], told: str) -> None:
    """The refusal names the file and the line, and nothing is half read."""
    with pytest.raises(SqlppError, match=told):
        loaded(written(tmp_path, text), format_, **options)


def test_what_is_not_there(tmp_path: Path) -> None:
    """A path without files, and bytes that are no text."""
    with pytest.raises(SqlppError, match=r"ASX3077.*nothing: path not found"):
        loaded(tmp_path / "nothing", "json")
    (tmp_path / "b").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(SqlppError, match=r"ASX3021.*no UTF-8"):
        loaded(tmp_path / "b", "csv")


def test_a_link_does_not_lead_out(tmp_path: Path) -> None:
    """What it leads to must lie where statements may read, whatever the link is called; one that stays inside is
    followed.
    """
    roots, tables = tmp_path / "roots", tmp_path / "roots" / "tables"
    tables.mkdir(parents=True)
    written(tmp_path, '{"id":1}', "secret.json")
    written(tables, '{"id":2}', "table.json")
    written(roots, '{"id":3}', "mine.json")
    for name, target in (("out", tmp_path / "secret.json"), ("in", tables / "table.json"), ("ok", roots / "mine.json")):
        (roots / name).symlink_to(target)

    def linked(name: str) -> list[Value]:
        options = (("path", (roots / name).as_uri()), ("format", "json"))
        return list(read_files(ExternalSource("localfs", options, (roots.as_uri(),), (str(tables),)), FORM))

    assert linked("ok") == [{"id": 3}]
    for name in ("out", "in", "."):
        with pytest.raises(SqlppError, match="a link that leads out of"):
            linked(name)
