# SPDX-License-Identifier: Apache-2.0
"""`export` and `import`: the requests and the output of each; an interrupted import is resumed."""

from __future__ import annotations

from pathlib import Path

import pytest

from limnos.model.frames import frame_message
from tests.cli.conftest import Run
from tests.client.fake import FakeServer

HEADER = frame_message(b"\x0a\x04head")
IMPORTS = "/api/limnos/v1/imports"
FOUND = {"id": 7, "name": "copy", "format": "proto", "ids": "map", "state": "open", "records": 0}
DONE = {"metalake": "copy", "records": 450, "masked": [f"main: key{at}" for at in range(7)]}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """An export file of 450 records that the client can split into parts."""
    path = tmp_path / "lake.export"
    path.write_bytes(HEADER + frame_message(b"record") * 449)
    return path


def feeds(fake: FakeServer, *, total: int = 450, at: int = 0) -> None:
    """Add routes that accept parts of 200 records."""
    while at < total:
        after, at = at, min(total, at + 200)
        fake.on("POST", f"{IMPORTS}/7/records?after={after}", {**FOUND, "records": at})
    fake.on("POST", f"{IMPORTS}/7/finish", DONE)


def test_export_writes_requested_format_to_stdout(fake: FakeServer, limnos: Run) -> None:
    """`export` writes to standard output, in the requested format."""
    fake.on("GET", "/api/limnos/v1/metalakes/lake/export?format=json&secrets=true", "lines\n")

    done = limnos("export", "lake", "--format", "json", "--secrets")
    assert (done.code, done.out) == (0, "lines\n")


def test_import_feeds_a_file_in_parts(fake: FakeServer, limnos: Run, file: Path) -> None:
    """`import` creates the metalake, sends all parts and finishes. The output names the secrets that the file does not
    contain.
    """
    fake.on("POST", IMPORTS, FOUND, status=201)
    feeds(fake)

    done = limnos("import", str(file), "--as", "copy", "--ids", "keep", "--output", "table")

    assert done.code == 0, done.err
    assert fake.asked[0].body == {"name": "copy", "format": "proto", "ids": "keep"}
    assert b"".join(request.body for request in fake.asked[1:-1]) == file.read_bytes()  # type: ignore[misc]
    assert {request.headers["Content-Type"] for request in fake.asked[1:-1]} == {"application/x-protobuf"}
    assert (
        "imported 450 records as metalake copy; set the secrets again that the file does not contain: main: key0"
        in done.out
    )
    assert "…" in done.out


def test_interrupted_import_can_be_resumed(fake: FakeServer, limnos: Run, file: Path) -> None:
    """After an interruption the output names the command that resumes the import. Accepted parts are not sent again."""
    fake.on("POST", IMPORTS, FOUND, status=201)
    fake.on("POST", f"{IMPORTS}/7/records?after=0", {**FOUND, "records": 200})
    fake.on("POST", f"{IMPORTS}/7/records?after=200", hang_up=True)
    cut = limnos("import", str(file), "--as", "copy")

    fake.on("GET", f"{IMPORTS}/7", {**FOUND, "records": 400})
    feeds(fake, at=400)
    fake.asked.clear()
    done = limnos("import", str(file), "--resume", "7")

    assert cut.code == 6
    assert f"continue with 'limnos import {file} --resume 7 --uri {fake.uri} --user ana'" in cut.err
    assert done.code == 0, done.err
    assert fake.calls == [f"GET {IMPORTS}/7", f"POST {IMPORTS}/7/records?after=400", f"POST {IMPORTS}/7/finish"]


def test_import_resumes_from_any_record(fake: FakeServer, limnos: Run, file: Path) -> None:
    """`--resume` works from any record: if the server has only some records of a part, the remaining ones are sent."""
    fake.on("GET", f"{IMPORTS}/7", {**FOUND, "records": 150})
    fake.on("POST", f"{IMPORTS}/7/records?after=150", {**FOUND, "records": 200})
    feeds(fake, at=200)

    done = limnos("import", str(file), "--resume", "7")

    assert done.code == 0, done.err
    assert b"".join(request.body for request in fake.asked[1:-1]) == frame_message(b"record") * 300  # type: ignore[misc]


@pytest.mark.parametrize(
    "content", [b"", b"id,fare\n1,2\n", b'{"name": "lake"}\n', b"{", b"[" * 100_000, frame_message(b"record") * 3]
)
def test_file_that_is_no_export_opens_no_import(fake: FakeServer, limnos: Run, tmp_path: Path, content: bytes) -> None:
    """A file that does not begin with an export's header is refused before any request, with what it should be."""
    file = tmp_path / "other.csv"
    file.write_bytes(content)

    refused = limnos("import", str(file), "--as", "copy")

    assert refused.code == 2
    assert "it must be a file that 'limnos export METALAKE' wrote" in str(refused.error["message"])
    assert fake.asked == []


def test_imports_are_listed_and_discarded(fake: FakeServer, limnos: Run) -> None:
    """Imports are listed and discarded by number."""
    fake.on("GET", IMPORTS, {"imports": [FOUND]}).on("DELETE", f"{IMPORTS}/7", {"given_up": 7})

    assert limnos("import", "--list").result[0]["id"] == 7  # type: ignore[index]
    assert limnos("import", "--give-up", "7", "--yes").result == {"given_up": 7}


@pytest.mark.parametrize(
    "words",
    [
        ("import",),
        ("import", "x"),
        ("import", "x", "--as", "a", "--resume", "7"),
        ("import", "/nowhere/x", "--as", "a"),
    ],
)
def test_invalid_import_arguments_are_refused(limnos: Run, words: tuple[str, ...]) -> None:
    """Missing, contradictory or unreadable arguments of `import` are refused with exit code 2."""
    done = limnos(*words)

    assert done.code == 2
    assert any(text in done.err for text in ("missing", "--into begins an import", "cannot be read"))
