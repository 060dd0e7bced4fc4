# SPDX-License-Identifier: Apache-2.0
"""`head` and `files`: rows, texts and entries as a table or as JSON, and the message about what is omitted."""

from __future__ import annotations

from tests.cli.conftest import Run
from tests.client.fake import FakeServer

PREVIEW = "/api/limnos/v1/metalakes/lake/catalogs/main/tables/preview?table=raw.trips&rows=10"
TOLD = {
    "columns": [{"name": "id", "type": "long"}, {"name": "card", "type": "string", "masked": True}],
    "rows": [[1, None], [2, "xxxx1234"]],
    "snapshot_id": 7,
    "complete": False,
    "restricted": True,
    "columns_left_out": 3,
}


def test_json_has_one_object_per_row(fake: FakeServer, limnos: Run) -> None:
    """JSON has one object for each row, with the names of columns as keys."""
    fake.on("GET", PREVIEW, TOLD)

    assert limnos("head", "main.raw.trips").result == [{"id": 1, "card": None}, {"id": 2, "card": "xxxx1234"}]


def test_table_output_names_omitted_rows_and_columns(fake: FakeServer, run: Run) -> None:
    """The table output names further rows, omitted columns and the restriction."""
    fake.on("GET", f"{PREVIEW}&columns=id%2Ccard&snapshot=7", TOLD)

    done = run(
        "head", "main.raw.trips", "--columns", "id,card", "--snapshot", "7", "--uri", fake.uri, "--output", "table"
    )

    assert (done.code, "xxxx1234" in done.out, "null" in done.out) == (0, True, True)
    for words in ("more rows", "and card is masked"):
        assert words in done.err
    assert "more columns" not in done.err  # those that were named are shown


def test_columns_beyond_the_default_ones_are_counted(fake: FakeServer, run: Run) -> None:
    """Without names of columns the first ones are shown, and a remark has the number of the others."""
    fake.on("GET", PREVIEW, TOLD)
    fake.on("GET", PREVIEW, TOLD | {"columns_left_out": 1})

    several, one = (run("head", "main.raw.trips", "--uri", fake.uri, "--output", "table").err for _ in range(2))

    assert "3 more columns: name some by --columns" in several
    assert "1 more column: name some by --columns" in one


FILES = "/api/limnos/v1/metalakes/lake/catalogs/files/filesets"
FILE = f"{FILES}/preview?fileset=raw.scans&file=a%2Fb.csv&rows=10"


def test_rows_of_a_file_are_shown_as_a_table(fake: FakeServer, limnos: Run) -> None:
    """Rows of a file are shown as rows of a table. The location is sent only if it is not the default one."""
    preview = {"kind": "rows", "size": 9, "complete": True, "columns": [{"name": "id", "type": ""}], "rows": [["1"]]}
    fake.on("GET", FILE, preview)
    fake.on("GET", f"{FILES}/preview?fileset=raw.scans&file=a%2Fb.csv&location=old&rows=10", {**preview, "rows": []})

    assert limnos("head", "files.raw.scans", "--file", "a/b.csv").result == [{"id": "1"}]
    assert limnos("head", "files.raw.scans", "--file", "a/b.csv", "--location", "old").result == []


def test_file_in_the_path_of_its_fileset_is_named_by_a_flag(fake: FakeServer, limnos: Run) -> None:
    """A path that ends with a file has no table: the answer is the command with `--file`."""
    url = "/api/limnos/v1/metalakes/lake/catalogs/files/tables/preview?table=raw.scans%2Fa%2Fb.csv&rows=10"
    fake.on("GET", url, {"code": "not-found", "message": "no table"}, status=404)

    done = limnos("head", "files.raw.scans/a/b.csv")

    assert done.error["hint"] == "'limnos head files.raw.scans --file a/b.csv'"


def test_text_of_a_file_cannot_control_the_terminal(fake: FakeServer, run: Run) -> None:
    """Newlines and indentation are printed, other control characters as escapes. Omitted text is reported."""
    fake.on("GET", FILE, {"kind": "text", "size": 99, "complete": False, "text": "a\n\tb\x1b[2J"})

    done = run("head", "files.raw.scans", "--file", "a/b.csv", "--uri", fake.uri, "--output", "table")

    assert done.out == "a\n    b\\x1b[2J\n"
    assert "more rows" in done.err


def test_binary_file_is_shown_by_its_size(fake: FakeServer, run: Run) -> None:
    """For a binary file the size is shown, not the bytes."""
    fake.on("GET", FILE, {"kind": "binary", "size": 99, "complete": False})

    done = run("head", "files.raw.scans", "--file", "a/b.csv", "--uri", fake.uri, "--output", "table")

    assert (done.out, "99 bytes" in done.err) == ("", True)


def test_a_location_without_a_file_is_a_mistake(run: Run) -> None:
    """A location without a file is an error that names the missing argument."""
    done = run("head", "files.raw.scans", "--location", "old")

    assert (done.code, "--file" in done.err) == (2, True)


def test_files_are_listed_by_page(fake: FakeServer, run: Run, limnos: Run) -> None:
    """Directories end with a slash. The command for the next page is shown in a form that can be typed."""
    entries = [
        {"name": "day=1", "directory": True},
        {"name": "a b.csv", "directory": False, "size": 3, "changed_at": "2026-01-01T00:00:00Z"},
    ]
    fake.on(
        "GET", f"{FILES}/entries?fileset=raw.scans&directory=%2F&limit=200", {"entries": entries, "after": "a b.csv"}
    )
    fake.on("GET", f"{FILES}/entries?fileset=raw.scans&directory=day%3D1&after=x&limit=5", {"entries": []})

    done = run("files", "files.raw.scans", "--uri", fake.uri, "--output", "table")

    assert [line.split()[0] for line in done.out.splitlines()[-2:]] == ["day=1/", "a"]
    assert "--after 'a b.csv'" in done.err
    assert limnos("files", "files.raw.scans", "day=1", "--after", "x", "--limit", "5").result == []


def test_path_of_a_file_lists_that_file(fake: FakeServer, limnos: Run) -> None:
    """A path that has no entries may be a file of the directory above."""
    entries = [{"name": name, "directory": False, "size": 3} for name in ("a.csv", "b.csv")]
    one = f"{FILES}/entries?fileset=raw.scans&directory=day%2F{{}}&limit=200"
    for name in ("b.csv", "c.csv"):
        fake.on("GET", one.format(name), {"entries": []})
    fake.on("GET", f"{FILES}/entries?fileset=raw.scans&directory=day&limit=1000", {"entries": entries})

    (row,) = limnos("files", "files.raw.scans", "day/b.csv").result
    missing = limnos("files", "files.raw.scans", "day/c.csv").result

    assert (row["name"], row["size"], missing) == ("b.csv", 3, [])
