# SPDX-License-Identifier: Apache-2.0
"""Namespace routes: nesting, odd names, parents, paging, properties, drops."""

from __future__ import annotations

import pytest

from tests.http.driver import API, DriverNode, grant
from tests.http.iceberg.wire import SPACES, error_of, make_space, make_table, nothing_done, properties_of, space_path

ODD = [
    "dot.ted",
    "sla/sh",
    "sp ace",
    "per%cent",
    "%2F",
    "Ünïcödé",
    "数据",
    "plus+sign",
    "q?u#ery",
    "a&b=c",
    "'\"`\\",
    "tables",
    "namespaces",
    "properties",
    "lake.main",
    "-",
    "~",
    "\u2028",
    "\x02",
    "x" * 255,
]


def test_namespace_lifecycle(lake: DriverNode) -> None:
    """A namespace can be created, loaded, listed, changed and dropped."""
    home = space_path("a")

    created = lake.post(SPACES, {"namespace": ["a"], "properties": {"k": "v"}})
    loaded, head = lake.get(home), lake.ask("HEAD", home)
    changed = lake.post(f"{home}/properties", {"removals": ["k", "none"], "updates": {"n": "1"}})
    listed = lake.get(SPACES)
    dropped = lake.delete(home)

    assert (created.status, created["namespace"], properties_of(created)) == (200, ["a"], {"k": "v"})
    assert loaded.json() == created.json()
    assert (head.status, head.body) == (204, b"")
    assert changed.json() == {"updated": ["n"], "removed": ["k"], "missing": ["none"]}
    assert listed.json() == {"namespaces": [["a"]], "next-page-token": None}
    assert (dropped.status, dropped.body) == (204, b"")
    assert error_of(lake.get(home)) == (404, "NoSuchNamespaceException", "Namespace does not exist: a")
    assert lake.ask("HEAD", home).status == 404


def test_namespace_without_tables_has_no_location_for_them(node: DriverNode) -> None:
    """In a catalog of filesets or models no table can lie below a location, so the answer names none, unless the
    namespace has one of its own.
    """
    root = f"file://{node.data}/warehouse/assets"
    own = f"{root}/own"
    cases = [("models", "MODEL", {}), ("assets", "FILESET", {}), ("assets", "FILESET", {"location": own})]
    answers = []
    for at, (catalog, kind, properties) in enumerate(cases):
        body = {"name": catalog, "type": kind, "comment": "", "properties": {"location": root}}
        if at < 2:
            node.done("POST", f"{API}/lake/catalogs", body)
        spaces = SPACES.replace("lake.main", f"lake.{catalog}")
        answers.append(node.done("POST", spaces, {"namespace": [f"n{at}"], "properties": properties})["properties"])
        assert node.get(f"{spaces}/n{at}")["properties"] == answers[-1]

    assert answers == [properties for _, _, properties in cases]


def test_nested_namespaces_are_listed_by_parent(lake: DriverNode) -> None:
    """A list has the direct children of a level with their full paths. Missing parents are created with the child."""
    make_space(lake, "a", "b", "c", depth="3")
    make_space(lake, "a", "d")

    assert lake.get(SPACES)["namespaces"] == [["a"]]
    assert lake.get(f"{SPACES}?parent=a")["namespaces"] == [["a", "b"], ["a", "d"]]
    assert lake.get(f"{SPACES}?parent=a%1Fb")["namespaces"] == [["a", "b", "c"]]
    assert lake.get(f"{SPACES}?parent=a%1fb%1fc")["namespaces"] == []
    assert properties_of(lake.get(space_path("a", "b"))) == {}
    assert properties_of(lake.get(space_path("a", "b", "c"))) == {"depth": "3"}


def test_creator_owns_new_implicit_parents(node: DriverNode) -> None:
    """The creator of a namespace owns it and its new parents, but not existing ones."""
    make_space(node, "a")
    grant(node, "ana", "use_catalog create_schema", kind="CATALOG", on="main")
    make_space(node, "a", "b", "c", user="ana")

    owners = [
        node.get(f"{API}/lake/owners/schema/main.{name}").json()["owner"]["name"] for name in ("a", "a:b", "a:b:c")
    ]

    assert owners == ["admin", "ana", "ana"]


def test_refused_child_creates_no_parents(node: DriverNode) -> None:
    """If the last name of a path is refused, none of its parents are created."""
    with nothing_done(node):
        refused = node.post(SPACES, {"namespace": ["p", "q", "with:separator"]})

    assert refused.status == 400
    assert node.get(SPACES)["namespaces"] == []


GO = "GoIceberg/0.7.0"


@pytest.mark.parametrize("agent, name", [(GO, "a+b"), ("Java/17.0.15", "a b"), ("PyIceberg/0.12.0", "a b")])
def test_raw_plus_in_path_is_decoded_by_client(node: DriverNode, agent: str, name: str) -> None:
    """A `+` alone in a path is a plus from iceberg-go, which escapes spaces as `%20`, and a space from all other
    clients.
    """
    make_table(node, name, name)
    make_space(node, "a+b" if name == "a b" else "a b")
    home = f"{SPACES}/a+b"

    loaded = node.get(home, user_agent=agent)
    table = node.ask("HEAD", f"{home}/tables/a+b", user_agent=agent)
    dropped = node.ask("DELETE", f"{home}/tables/a+b", user_agent=agent)

    assert (loaded["namespace"], table.status, dropped.status) == ([name], 204, 204)


@pytest.mark.parametrize("agent", [GO, "Java/17.0.15"])
def test_plus_beside_an_escaped_space(node: DriverNode, agent: str) -> None:
    """A client that writes spaces as `%20` does not form-encode, so `+` in the same segment is a plus."""
    make_space(node, "a+b", "c d")

    assert node.get(f"{SPACES}/a+b%1Fc%20d", user_agent=agent)["namespace"] == ["a+b", "c d"]


@pytest.mark.parametrize("name", ODD)
def test_names_with_any_characters_are_returned_unchanged(lake: DriverNode, name: str) -> None:
    """Names with any characters are returned as sent at every depth, by bodies and by escaped paths."""
    namespace = lake.post(SPACES, {"namespace": ["top", name, name]})

    assert namespace["namespace"] == ["top", name, name]
    assert lake.get(space_path("top", name, name))["namespace"] == ["top", name, name]
    assert lake.get(f"{SPACES}?parent={space_path('top', name).rpartition('/')[2]}")["namespaces"] == [
        ["top", name, name]
    ]
    assert lake.delete(space_path("top", name, name)).status == 204


def test_java_form_encoded_spaces_are_decoded(node: DriverNode) -> None:
    """Java's clients form-encode levels: a plus is a space, an escaped plus is a plus."""
    make_space(node, "a b")
    make_space(node, "a+b")

    assert node.get(f"{SPACES}/a+b")["namespace"] == ["a b"]
    assert node.get(f"{SPACES}/a%2Bb")["namespace"] == ["a+b"]
    assert node.get(f"{SPACES}?parent=a+b")["namespaces"] == []


def test_doubly_quoted_parent_is_decoded_twice(node: DriverNode) -> None:
    """A parent that does not exist is decoded a second time, because PyIceberg quotes the parent twice."""
    make_space(node, "a b", "child")
    twice = node.get(f"{SPACES}?parent=a%2520b")

    make_space(node, "a%20b", "other")
    exact = node.get(f"{SPACES}?parent=a%2520b")

    assert twice["namespaces"] == [["a b", "child"]]
    assert exact["namespaces"] == [["a%20b", "other"]]


def test_missing_parent_is_404(node: DriverNode) -> None:
    """A parent that does not exist under either decoding is 404 with the error type for namespaces."""
    answers = [node.get(f"{SPACES}?parent={parent}") for parent in ("gone", "go%2520ne", "a%1Fgone")]

    assert [error_of(answer)[:2] for answer in answers] == [(404, "NoSuchNamespaceException")] * 3


def test_existing_name_returns_409(lake: DriverNode) -> None:
    """Creating an existing namespace is 409 and does not change it."""
    make_space(lake, "a", k="v")

    again = lake.post(SPACES, {"namespace": ["a"], "properties": {"k": "other"}})

    assert error_of(again)[:2] == (409, "AlreadyExistsException")
    assert properties_of(lake.get(space_path("a"))) == {"k": "v"}


def test_names_are_case_and_normalization_sensitive(lake: DriverNode) -> None:
    """Names that differ in letter case or Unicode normalization are different names. Lists are sorted by code
    points.
    """
    for name in ("é", "e\u0301", "a", "A", "Z"):
        make_space(lake, name)

    assert lake.get(SPACES)["namespaces"] == [["A"], ["Z"], ["a"], ["e\u0301"], ["é"]]


def test_comment_property_is_the_gravitino_comment(node: DriverNode) -> None:
    """The property `comment` is the comment of the Gravitino schema: each changes the other, and it can be removed."""
    make_space(node, "a", comment="first", k="v")
    schema = f"{API}/lake/catalogs/main/schemas/a"
    first = node.get(schema).json()["schema"]["comment"]

    changed = node.post(f"{space_path('a')}/properties", {"updates": {"comment": "second"}})
    second = node.get(schema).json()["schema"]["comment"]
    removed = node.post(f"{space_path('a')}/properties", {"removals": ["comment"]})

    assert (first, second) == ("first", "second")
    assert changed["updated"] == ["comment"]
    assert removed["removed"] == ["comment"]
    assert properties_of(node.get(space_path("a"))) == {"k": "v"}
    assert node.get(schema).json()["schema"].get("comment") is None


def test_same_key_in_updates_and_removals_returns_422(node: DriverNode) -> None:
    """A key that is both set and removed is 422 with its name, and nothing is changed."""
    make_space(node, "a", k="v")

    with nothing_done(node):
        refused = node.post(f"{space_path('a')}/properties", {"removals": ["k", "x"], "updates": {"k": "w", "y": "1"}})

    status, kind, message = error_of(refused)
    assert (status, kind) == (422, "UnprocessableEntityException")
    assert "k" in message.partition(":")[2]


def test_properties_can_be_set_and_removed_in_one_request(node: DriverNode) -> None:
    """One request can set and remove different keys; a key removed twice is listed once."""
    make_space(node, "a", old="1", kept="2")

    answer = node.post(f"{space_path('a')}/properties", {"removals": ["old", "old"], "updates": {"new": "3"}})

    assert answer.json() == {"updated": ["new"], "removed": ["old"], "missing": []}
    assert properties_of(node.get(space_path("a"))) == {"kept": "2", "new": "3"}


@pytest.mark.parametrize("body", [{}, {"removals": None, "updates": None}, {"removals": [], "updates": {}}])
def test_empty_properties_update_changes_nothing(node: DriverNode, body: object) -> None:
    """An empty update changes nothing and returns empty lists."""
    make_space(node, "a", k="v")

    answer = node.post(f"{space_path('a')}/properties", body)

    assert answer.json() == {"updated": [], "removed": [], "missing": []}
    assert properties_of(node.get(space_path("a"))) == {"k": "v"}


def test_drop_of_a_namespace_with_content_returns_409(lake: DriverNode) -> None:
    """Dropping a namespace with a child or a table is refused with 409, and the message names the content. An empty
    namespace is dropped.
    """
    make_space(lake, "a", "b")
    make_table(lake, "t", "inner")
    full = [error_of(lake.delete(space_path(name))) for name in ("a", "t")]
    lake.delete(space_path("a", "b"))

    emptied = lake.delete(space_path("a"))

    assert [answer[:2] for answer in full] == [(409, "NamespaceNotEmptyException")] * 2
    assert "b" in full[0][2]
    assert "inner" in full[1][2]
    assert emptied.status == 204
    assert lake.ask("HEAD", space_path("t")).status == 204


def test_recreated_namespace_has_no_old_properties_or_grants(node: DriverNode) -> None:
    """A namespace created again under a dropped one's name has none of its properties and grants."""
    make_space(node, "a", k="v")
    grant(node, "ana", "use_catalog", kind="CATALOG", on="main")
    grant(node, "ana", "use_schema", kind="SCHEMA", on="main.a")
    before = node.get(space_path("a"), user="ana")
    node.delete(space_path("a"))
    make_space(node, "a")

    after = node.get(space_path("a"), user="ana")

    assert (before.status, after.status) == (200, 403)
    assert properties_of(node.get(space_path("a"))) == {}


@pytest.mark.parametrize(
    "method, path",
    [("GET", ""), ("HEAD", ""), ("DELETE", ""), ("POST", "/properties"), ("GET", "/tables")],
)
def test_missing_namespace_returns_404(lake: DriverNode, method: str, path: str) -> None:
    """Each route of a missing namespace is 404 to users who could see it."""
    make_space(lake, "a")

    answers = [
        lake.ask(method, f"{space_path(*levels)}{path}", {}) for levels in (("gone",), ("a", "gone"), ("x", "y", "z"))
    ]

    assert [answer.status for answer in answers] == [404] * 3
    if method != "HEAD":
        assert {error_of(answer)[1] for answer in answers} == {"NoSuchNamespaceException"}


def test_missing_parent_is_refused_with_parents_false(node: DriverNode) -> None:
    """With `parents=false`, a missing parent is 404 for users who may create namespaces there, and 403 for others."""
    grant(node, "ana", "use_catalog create_schema", kind="CATALOG", on="main")
    body = {"namespace": ["x", "y"]}

    missing = node.ask("POST", f"{SPACES}?parents=false", body, user="ana")
    refused = [node.ask("POST", f"{SPACES}{query}", body, user="ben") for query in ("?parents=false", "")]
    created = node.ask("POST", f"{SPACES}?parents=true", body, user="ana")

    assert (missing.status, missing["error"]["type"]) == (404, "NoSuchNamespaceException")
    assert [answer.status for answer in refused] == [403, 403]
    assert refused[0]["error"]["message"] == refused[1]["error"]["message"]
    assert created.status == 200


def test_number_and_length_of_properties_are_limited(lake: DriverNode) -> None:
    """Number and length of properties are limited, because each request reads them; removals are not."""
    make_space(lake, "a")
    path, many = f"{space_path('a')}/properties", {f"k{number}": "v" for number in range(10_000)}

    assert lake.post(path, {"updates": many}).status == 200
    refusals = [
        lake.post(path, {"updates": {"more": "v"}}),
        lake.post(path, {"updates": {"k0": "x" * (1 << 18)}}),
        lake.post(SPACES, {"namespace": ["b"], "properties": {**many, "more": "v"}}),
    ]
    assert [each.status for each in refusals] == [400] * 3
    assert ["at most" in each.json()["error"]["message"] for each in refusals] == [True] * 3
    assert lake.post(path, {"updates": {"k0": "w"}}).status == 200
    assert lake.post(path, {"removals": [*list(many)[1:], *map(str, range(20_000))]}).status == 200
    assert properties_of(lake.get(space_path("a"))) == {"k0": "w"}
