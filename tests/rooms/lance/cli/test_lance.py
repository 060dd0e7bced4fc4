# SPDX-License-Identifier: Apache-2.0
"""Commands on directories of Lance tables. Only the import needs a server."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from limnos.rooms.lance.sources.directories import LanceDirectory
from tests.cli.conftest import Run
from tests.client.fake import FakeServer

TABLE = "/lance/v1/table/lance%24ml%24"
QUERY = "?delimiter=%24&metalake=lake"
SPACES = "/iceberg/v1/lake.lance/namespaces"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A V2 directory: a declared table in a namespace, a table at the top level with a versions directory, and an
    unknown folder.
    """
    directory = LanceDirectory(str(tmp_path))
    directory.create_namespace(("text",), {"owner": "search"})
    directory.declare(("text", "docs"), {"k": "v"})
    (tmp_path / "top.lance" / "_versions").mkdir(parents=True)
    (tmp_path / "foreign.lance").mkdir()
    return tmp_path


def test_lance_ls_lists_namespaces_and_tables(run: Run, root: Path) -> None:
    """`lance ls` lists namespaces and tables of the top level, or of one namespace, or all tables."""
    top, inner, every = (run("lance", "ls", str(root), *words).result for words in ((), ("text",), ("--all",)))

    assert [(row["name"], row["kind"]) for row in top] == [
        ("text", "namespace"),
        ("foreign", "table"),
        ("top", "table"),
    ]
    assert [row["name"] for row in inner] == ["text.docs"]
    assert [row["name"] for row in every] == ["foreign", "text.docs", "top"]


def test_lance_describe_shows_layout_and_declared_table(run: Run, root: Path) -> None:
    """`lance describe` shows a directory's layout and a declared table; for a folder that is not a table it prints an
    error.
    """
    assert run("lance", "describe", str(root)).result == {"root": str(root), "layout": "v2", "tables": 3}
    description = run("lance", "describe", str(root), "text.docs").result
    assert (description["version"], description["properties"]) == (None, {"k": "v"})
    foreign = run("lance", "describe", str(root), "foreign")
    assert (foreign.code, foreign.error["code"]) == (1, "invalid-table")
    assert run("lance", "describe", str(root), "text.none").code == 3
    assert run("lance", "describe", str(root), "text.docs", "--version", "3").code == 3


def test_lance_describe_shows_version_and_columns(run: Run, tmp_path: Path) -> None:
    """`lance describe` reads a table with data: its version, or one by number, and the columns."""
    import lance

    rows = pa.table({"id": [1, 2], "text": ["a", "b"]})
    lance.write_dataset(rows, str(tmp_path / "t.lance"))
    lance.write_dataset(rows, str(tmp_path / "t.lance"), mode="append")

    newest, first = (run("lance", "describe", str(tmp_path), "t", *words).result for words in ((), ("--version", "1")))

    assert (newest["version"], first["version"]) == (2, 1)
    assert list(newest["columns"]) == ["id", "text"]


def test_missing_directory_is_an_error(run: Run, tmp_path: Path) -> None:
    """A path that does not exist is an error, not an empty directory."""
    done = run("lance", "ls", str(tmp_path / "nope"))

    assert (done.code, done.error["code"]) == (3, "not-found")


def test_layout_v0_lists_folders_beside_a_v1_table(run: Run, tmp_path: Path) -> None:
    """With `--layout v0`, folders beside a V1 table are listed as tables."""
    (tmp_path / "a.lance").mkdir()
    (tmp_path / "b").mkdir()

    assert [row["name"] for row in run("lance", "ls", str(tmp_path)).result] == ["a"]
    assert [row["name"] for row in run("lance", "ls", str(tmp_path), "--layout", "v0").result] == ["`a.lance`", "b"]


def test_guessed_layout_lists_all_folders(run: Run, tmp_path: Path) -> None:
    """Any directory with subdirectories looks like layout v0. If the layout is guessed, folders without a table are
    listed as `lance serve` and catalogs list them, and named on standard error.
    """
    for folder in ("written/_versions", "photos", "notes"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "declared").mkdir()
    (tmp_path / "declared" / ".lance-reserved").touch()

    done = run("lance", "ls", str(tmp_path))
    stated = run("lance", "ls", str(tmp_path), "--layout", "v0")

    assert [row["kind"] for row in done.result] == ["table", "folder", "folder", "table"]  # type: ignore[attr-defined]
    assert {row["kind"] for row in stated.result} == {"table"}  # type: ignore[attr-defined]
    assert [row["name"] for row in done.result] == ["declared", "notes", "photos", "written"]  # type: ignore[attr-defined]
    assert "without a Lance table: notes, photos" in done.err
    assert "notes" not in stated.err


def test_import_registers_and_reports(fake: FakeServer, limnos: Run, root: Path) -> None:
    """Missing namespaces are created, existing ones are kept, tables are registered or declared. An unknown folder is
    reported, and the exit code is 1.
    """
    fake.on("POST", f"{SPACES}?parents=false", {"error": {"code": 409, "message": "there", "type": "x"}}, status=409)
    fake.on("POST", f"{SPACES}?parents=false", {"namespace": ["ml", "text"], "properties": {}})
    fake.on("POST", f"{TABLE}text%24docs/declare{QUERY}", {"location": "file:///d", "properties": {}})
    fake.on("POST", f"{TABLE}top/register{QUERY}", {"error": "top", "code": 5}, status=409)
    fake.on("POST", f"{TABLE}top/describe{QUERY}", {"location": f"file://{root}/top.lance"})

    done = limnos("lance", "import", str(root), "--into", "lance.ml")

    rows = {row["name"]: row for row in done.result}
    assert {name: row["done"] for name, row in rows.items()} == {
        "lance.ml.foreign": "failed",
        "lance.ml.text.docs": "declared",
        "lance.ml.top": "nothing",
    }
    assert "does not comply" in rows["lance.ml.foreign"]["why"]
    assert done.code == 1
    declared = next(request for request in fake.asked if "/declare" in request.target)
    assert declared.body["properties"] == {"k": "v"}
    assert declared.body["location"].startswith(str(root))
    assert [request.body["namespace"] for request in fake.asked if request.target.startswith(SPACES)] == [
        ["ml"],
        ["ml", "text"],
    ]


def test_failed_import_drops_only_its_new_namespaces(fake: FakeServer, limnos: Run, root: Path) -> None:
    """If the import fails, the namespaces that it created are dropped again, the innermost first. Existing ones
    remain.
    """
    refused = {"error": "Location is not within the allowed roots", "code": 13}
    fake.on("POST", f"{SPACES}?parents=false", {"error": {"code": 409, "message": "there", "type": "x"}}, status=409)
    fake.on("POST", f"{SPACES}?parents=false", {"namespace": ["ml", "text"], "properties": {}})
    fake.on("POST", f"{TABLE}text%24docs/declare{QUERY}", refused, status=400)
    fake.on("POST", f"{TABLE}top/register{QUERY}", refused, status=400)
    fake.on("DELETE", f"{SPACES}/ml%1Ftext", None, status=204)

    done = limnos("lance", "import", str(root), "--into", "lance.ml")

    assert done.code == 1
    assert [request.target for request in fake.asked if request.method == "DELETE"] == [f"{SPACES}/ml%1Ftext"]


def test_dry_run_checks_tables_and_creates_nothing(fake: FakeServer, limnos: Run, root: Path) -> None:
    """A dry run sends each table's request for a check only. Refusals of the server are reported, and no namespace is
    created.
    """
    fake.on("POST", f"{TABLE}text%24docs/declare{QUERY}&dry_run=true", {"location": "file:///d", "properties": {}})
    refused = {"error": "Location is not within the allowed roots", "code": 13}
    fake.on("POST", f"{TABLE}top/register{QUERY}&dry_run=true", refused, status=400)

    done = limnos("lance", "import", str(root), "--into", "lance.ml", "--dry-run")

    rows = {row["name"]: (row["done"], row["why"]) for row in done.result}
    assert rows["lance.ml.text.docs"] == ("nothing", "--dry-run: it would be declared")
    assert rows["lance.ml.top"][0] == "failed"
    assert "allowed roots" in rows["lance.ml.top"][1]
    assert rows["lance.ml.foreign"][0] == "failed"
    assert done.code == 1
    assert all("dry_run=true" in request.target for request in fake.asked)


def test_an_adapter_with_a_wrong_file_of_settings_does_not_start(run: Run, root: Path) -> None:
    """A missing settings file, or an unknown setting in it, is reported before the adapter serves."""
    missing = run("lance", "serve", str(root), "--config", str(root / "none.toml"))
    (root / "wrong.toml").write_text("[lance]\nworker_max = 2\n")
    wrong = run("lance", "serve", str(root), "--config", str(root / "wrong.toml"))

    assert (missing.code, wrong.code) == (2, 2)
    assert "none.toml" in missing.error["message"]
    assert "lance.workers_max" in wrong.error["message"]
