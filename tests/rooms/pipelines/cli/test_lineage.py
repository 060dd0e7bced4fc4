# SPDX-License-Identifier: Apache-2.0
"""`lineage`: trees for people, the whole graph for programs, and paths that end in a column."""

from __future__ import annotations

from tests.cli.conftest import Run
from tests.client.fake import FakeServer

LINEAGE = "/api/limnos/v1/metalakes/lake/lineage"
SAID = [{"job": {"namespace": "n", "name": "load"}, "at": "2026-01-31T00:00:00Z", "by": "ana", "kinds": ["IDENTITY"]}]
GRAPH = {
    "root": "1",
    "complete": True,
    "after": None,
    "nodes": [
        {"id": "1", "kind": "table", "path": ["main", "a", "t"]},
        {"id": "2", "kind": "table", "path": ["main", "a", "s"]},
        {"id": "hidden-1", "kind": "hidden"},
        {"id": "3", "kind": "outside", "namespace": "s3://b", "name": "x.csv"},
    ],
    "edges": [
        {"source": "2", "target": "1", "depth": 1, "direct": True, "said": SAID},
        {"source": "hidden-1", "target": "1", "depth": 1},
        {"source": "3", "target": "2", "depth": 2, "direct": False, "said": SAID},
        {"source": "1", "target": "2", "depth": 2, "direct": True, "said": SAID},
    ],
}
COLUMN = {
    "root": "1:1",
    "nodes": [{"id": "1:1", "kind": "table", "path": ["main", "a", "t"], "column": "c"}],
    "edges": [],
}


def test_lineage_is_shown_as_a_tree(fake: FakeServer, run: Run) -> None:
    """Each source is shown once, below the objects that were derived from it, direct sources first. Hidden nodes have
    no name; a cycle ends.
    """
    fake.on("GET", f"{LINEAGE}?path=main.a.t&depth=2&direction=up", GRAPH)

    command_result = run("lineage", "up", "main.a.t", "--depth", "2", "--uri", fake.uri, "--output", "table")

    assert command_result.out.splitlines() == [
        "main.a.t",
        "├─ main.a.s  (identity) by load",
        "│  ├─ main.a.t  (identity) by load (above)",
        "│  └─ s3://b x.csv  (identity, indirect) by load",
        "└─ an object that you may not see",
    ]


def test_json_is_the_whole_graph(fake: FakeServer, limnos: Run) -> None:
    """JSON output has all nodes and edges."""
    fake.on("GET", f"{LINEAGE}?path=main.a.t&depth=3&direction=down", GRAPH)

    graph = limnos("lineage", "down", "main.a.t").result

    assert isinstance(graph, dict)
    assert [edge["source"] for edge in graph["edges"]] == ["2", "hidden-1", "3", "1"]


def test_the_last_part_may_be_a_column(fake: FakeServer, run: Run) -> None:
    """If the path is not a table, its last part is requested as a column of the table above. If that fails as well, the
    first error is reported.
    """
    missing = {"error": {"code": "not-found", "message": "Table does not exist: a.t.c"}}
    fake.on("GET", f"{LINEAGE}?path=main.a.t.c&depth=3&direction=up", missing, status=404)
    fake.on("GET", f"{LINEAGE}?path=main.a.t&column=c&depth=3&direction=up", COLUMN)
    fake.on("GET", f"{LINEAGE}?path=main.a.u.c&depth=3&direction=up", missing, status=404)
    denied = {"error": {"code": "forbidden", "message": "you may not"}}
    fake.on("GET", f"{LINEAGE}?path=main.a.u&column=c&depth=3&direction=up", denied, status=403)

    command_result = run("lineage", "up", "main.a.t.c", "--uri", fake.uri, "--output", "table")
    refused = run("lineage", "up", "main.a.u.c", "--uri", fake.uri, "--output", "json")

    assert command_result.out.splitlines() == ["main.a.t.c", "  no object is recorded that it comes from"]
    assert refused.error["message"] == "Table does not exist: a.t.c in catalog main"


def test_error_names_missing_column_or_typed_path(fake: FakeServer, run: Run) -> None:
    """If the table exists, the error names the missing column and the command that lists the columns; otherwise it
    names the typed path.
    """

    def missing(path: str, message: str) -> None:
        body = {"error": {"code": "not-found", "message": message}}
        fake.on("GET", f"{LINEAGE}?path={path}&depth=3&direction=down", body, status=404)

    missing("main.a.t.c", "Table does not exist: a.t.c")
    missing("main.a.t&column=c", "main.a.t has no column c: it has x")
    missing("main.a.b.u", "Table does not exist: a.b.u")
    missing("main.a.b&column=u", "Table does not exist: a.b")

    column = run("lineage", "down", "main.a.t.c", "--uri", fake.uri, "--output", "table")
    table = run("lineage", "down", "main.a.b.u", "--uri", fake.uri, "--output", "json")

    assert "main.a.t has no column c: it has x" in column.err
    assert f"'limnos show main.a.t --uri {fake.uri}' shows its columns" in column.err
    assert table.error["message"] == "Table does not exist: a.b.u in catalog main"
