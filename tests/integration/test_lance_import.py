# SPDX-License-Identifier: Apache-2.0
"""`limnos lance import` registers the tables of a directory at their locations; a catalog can also show a directory
directly.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import lance
import pyarrow as pa
import pytest
from lance.namespace import DirectoryNamespace, RestNamespace
from lance_namespace import CreateNamespaceRequest, ListTablesRequest

from tests.integration.live import LIMNOS, LiveServer

pytestmark = [pytest.mark.integration, pytest.mark.filterwarnings("ignore::DeprecationWarning")]
ROWS = pa.table({"id": [1, 2, 3]})


def limnos(server: LiveServer, *words: str) -> tuple[int, list[dict[str, object]]]:
    """Run a command; returns its exit code and its output."""
    done = subprocess.run(
        [*LIMNOS, *words, "--uri", server.uri, "--output", "json"],
        check=False,
        capture_output=True,
        text=True,
        env={**os.environ, "LIMNOS_TOKEN": server.token},
    )
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout)


def test_directory_is_imported_once_and_its_copy_is_served(server: LiveServer, tmp_path: Path) -> None:
    """Tables that Lance's own namespace wrote are registered in place; a second import changes nothing. A catalog shows
    a copy of the directory, because the original's locations are taken.
    """
    root, copy = tmp_path / "theirs", tmp_path / "copy"
    theirs = DirectoryNamespace(root=str(root))
    theirs.create_namespace(CreateNamespaceRequest(id=["text"]))
    lance.write_dataset(ROWS, namespace_client=theirs, table_id=["text", "docs"], mode="create")
    lance.write_dataset(ROWS, namespace_client=theirs, table_id=["top"], mode="create")
    (root / "foreign.lance").mkdir()
    shutil.copytree(root, copy)
    place = f"file://{root}"
    generic = ("--provider", "lakehouse-generic", "--property")
    assert limnos(server, "create", "catalog", "taken", *generic, f"allowed-locations={place}")[0] == 0
    assert limnos(server, "create", "catalog", "shown", *generic, f"lance-directory=file://{copy}")[0] == 0

    code, first = limnos(server, "lance", "import", str(root), "--into", "taken.ml")
    _, again = limnos(server, "lance", "import", str(root), "--into", "taken.ml")

    assert code == 1
    assert {row["name"]: row["done"] for row in first} == {
        "taken.ml.foreign": "failed",
        "taken.ml.text.docs": "registered",
        "taken.ml.top": "registered",
    }
    assert {row["done"] for row in again} == {"failed", "nothing"}
    ours = RestNamespace(**{"uri": f"{server.uri}/lance", "header.Authorization": f"Bearer {server.token}"})
    for table in (["taken", "ml", "text", "docs"], ["taken", "ml", "top"], ["shown", "text", "docs"], ["shown", "top"]):
        assert lance.dataset(namespace_client=ours, table_id=table).count_rows() == 3
    assert ours.list_tables(ListTablesRequest(id=["shown"])).tables == ["foreign", "top"]
    _, listed = limnos(server, "ls", "shown")
    assert [(row["name"], row["kind"]) for row in listed] == [
        ("shown.text", "namespace"),
        ("shown.foreign", "table"),
        ("shown.top", "table"),
    ]
    assert [row["name"] for row in limnos(server, "ls", "shown.text")[1]] == ["shown.text.docs"]
