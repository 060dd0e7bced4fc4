# SPDX-License-Identifier: Apache-2.0
"""Gravitino's view routes: the same views as over Iceberg REST, in Gravitino's format."""

from __future__ import annotations

import pytest

from tests.http.driver import API, DriverNode, grant
from tests.http.iceberg.wire import make_space, make_table, make_view, view_path, view_version

VIEWS = f"{API}/lake/catalogs/main/schemas/a%3Ab/views"
COLUMNS = [
    {"name": "id", "type": "long", "nullable": False, "autoIncrement": False},
    {"name": "price", "type": "decimal(9,2)", "nullable": True, "comment": "net", "autoIncrement": False},
    {"name": "at", "type": "timestamp_tz", "nullable": True, "autoIncrement": False},
    {"name": "key", "type": "fixed(16)", "nullable": True, "autoIncrement": False},
    {
        "name": "deep",
        "nullable": True,
        "autoIncrement": False,
        "type": {
            "type": "map",
            "valueContainsNull": False,
            "keyType": "string",
            "valueType": {
                "type": "list",
                "containsNull": True,
                "elementType": {"type": "struct", "fields": [{"name": "x", "type": "integer", "nullable": True}]},
            },
        },
    },
]
TEXTS = [{"type": "sql", "dialect": "spark", "sql": "select 1"}, {"type": "sql", "dialect": "trino", "sql": "select 2"}]
NEW = {
    "name": "v",
    "comment": "of the day",
    "columns": COLUMNS,
    "representations": TEXTS,
    "defaultCatalog": "lake",
    "defaultSchema": "a:b",
    "properties": {"k": "v"},
}


def test_view_lifecycle_over_both_protocols(node: DriverNode) -> None:
    """A view is created, returned as sent, listed, changed, renamed and dropped, and both protocols see the same
    view.
    """
    make_space(node, "a", "b")

    view = node.done("POST", VIEWS, NEW)["view"]
    loaded = node.done("GET", f"{VIEWS}/v")["view"]
    iceberg = node.done("GET", view_path("a", "b", "v"))["metadata"]
    listed = node.done("GET", VIEWS)["identifiers"]
    renamed = node.done("PUT", f"{VIEWS}/v", {"updates": [{"@type": "rename", "newName": "w"}]})["view"]
    dropped = [node.done("DELETE", f"{VIEWS}/w")["dropped"] for _ in range(2)]

    audit = view.pop("audit")
    assert view == NEW
    assert {**loaded, "audit": None} == {**view, "audit": None}
    assert audit["creator"] == "admin"
    assert iceberg["versions"][0]["default-namespace"] == ["a", "b"]
    assert iceberg["properties"] == {"k": "v", "comment": "of the day"}
    assert listed == [{"namespace": ["lake", "main", "a:b"], "name": "v"}]
    assert renamed["name"] == "w"
    assert dropped == [True, False]


def test_changes_of_a_request_create_one_version(node: DriverNode) -> None:
    """A change of text, columns, comment and properties in one request creates one new version."""
    make_view(node, "a", "b", "v", version=view_version(default_namespace=["a", "b"]))
    changes = [
        {"@type": "replaceView", "columns": COLUMNS[:1], "representations": TEXTS, "comment": "new"},
        {"@type": "setProperty", "property": "k", "value": "v"},
        {"@type": "removeProperty", "property": "gone"},
    ]

    changed = node.done("PUT", f"{VIEWS}/v", {"updates": changes})["view"]
    metadata = node.done("GET", view_path("a", "b", "v"))["metadata"]

    assert (changed["columns"], changed["representations"], changed["comment"]) == (COLUMNS[:1], TEXTS, "new")
    assert "defaultSchema" not in changed
    assert changed["properties"] == {"k": "v"}
    assert [one["version-id"] for one in metadata["version-log"]] == [1, 2]


@pytest.mark.parametrize(
    "change, word",
    [
        (
            [{"@type": "rename", "newName": "w"}, {"@type": "removeProperty", "property": "k"}],
            "must be the only change",
        ),
        ([{"@type": "rename", "newName": "not*good"}], "not*good"),
        (
            [{"@type": "replaceView", "columns": [{"name": "x", "type": "byte"}], "representations": TEXTS}],
            "no type byte",
        ),
        ([{"@type": "replaceView", "columns": [{"name": "x"}], "representations": TEXTS}], "type of column x"),
        ([{"@type": "replaceView", "columns": COLUMNS, "representations": []}], "no representation"),
        ([{"@type": "replaceView", "columns": COLUMNS, "representations": TEXTS[1:]}], "loss of view dialects"),
        ([{"@type": "updateComment", "newComment": "x"}], "updateComment"),
    ],
)
def test_invalid_change_returns_400_and_changes_nothing(node: DriverNode, change: object, word: str) -> None:
    """An impossible change is 400 with the reason, and changes nothing."""
    make_view(node, "a", "b", "v")
    before = node.done("GET", view_path("a", "b", "v"))

    answer = node.ask("PUT", f"{VIEWS}/v", {"updates": change})

    assert answer.status == 400
    assert word in answer.json()["message"].replace("%%", "%")
    assert node.done("GET", view_path("a", "b", "v")) == before


def test_names_of_views_and_tables_are_unique_together(node: DriverNode) -> None:
    """Names of views and tables are unique together. The exception names the kind that uses the name."""
    make_table(node, "a", "b", "t")
    make_view(node, "a", "b", "v")

    answers = {name: node.post(VIEWS, {**NEW, "name": name}) for name in ("t", "v")}

    assert {name: (answer.status, answer.json()["type"]) for name, answer in answers.items()} == {
        "t": (409, "TableAlreadyExistsException"),
        "v": (409, "ViewAlreadyExistsException"),
    }
    assert node.get(f"{VIEWS}/t").json()["type"] == "NoSuchViewException"


def test_unsupported_types_are_returned_as_external(node: DriverNode) -> None:
    """Types that Gravitino lacks are returned as external, and nanosecond timestamps with their precision."""
    schema = {
        "type": "struct",
        "fields": [
            {"id": 1, "name": "n", "required": False, "type": "timestamp_ns"},
            {"id": 2, "name": "g", "required": False, "type": "geometry(srid:1)"},
        ],
    }
    make_view(node, "a", "b", "v", schema=schema)

    columns = node.done("GET", f"{VIEWS}/v")["view"]["columns"]

    assert [one["type"] for one in columns] == [
        "timestamp(9)",
        {"type": "external", "catalogString": "geometry(srid:1)"},
    ]


def test_views_are_owned_granted_on_and_tagged(node: DriverNode) -> None:
    """The creator of a view owns it; it is granted on, tagged and transferred like a table."""
    node.done("POST", f"{API}/lake/users", {"name": "ana"})
    make_space(node, "a", "b")
    grant(node, "ana", "use_catalog use_schema create_view", kind="CATALOG", on="main")
    node.done("POST", VIEWS, NEW, user="ana")
    owner = node.done("GET", f"{API}/lake/owners/VIEW/main.a%3Ab.v")["owner"]
    node.done("POST", f"{API}/lake/tags", {"name": "red"})
    node.done("POST", f"{API}/lake/objects/VIEW/main.a%3Ab.v/tags", {"tagsToAdd": ["red"]})
    tagged = node.done("GET", f"{API}/lake/tags/red/objects")["metadataObjects"]
    node.done("POST", f"{API}/lake/users", {"name": "bob"})
    before = node.get(f"{VIEWS}/v", user="bob")
    grant(node, "bob", "use_catalog use_schema", kind="CATALOG", on="main")
    grant(node, "bob", "select_view", kind="VIEW", on="main.a:b.v")

    assert owner["name"] == "ana"
    assert tagged == [{"fullName": "main.a:b.v", "type": "view"}]
    assert (before.status, node.get(f"{VIEWS}/v", user="bob").status) == (403, 200)
    assert node.done("GET", VIEWS, user="bob")["identifiers"] == [{"namespace": ["lake", "main", "a:b"], "name": "v"}]
