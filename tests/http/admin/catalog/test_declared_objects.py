# SPDX-License-Identifier: Apache-2.0
"""The life of an object of each declared kind: created, listed, changed, found by a word, dropped and restored."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from limnos.model.declared_kinds import DECLARED, DeclaredKind
from tests.http.declared_requests import collection
from tests.http.driver import OWN, DriverNode
from tests.http.iceberg import wire
from tests.installed import room_part

index_step = room_part("limnos.rooms.search.services.indexing:index_step")
IDS = [each.kind.word for each in DECLARED]


@pytest.fixture
def node(tmp_path: Path) -> Iterator[DriverNode]:
    """A node with the namespace `main.a`."""
    with wire.node_over(tmp_path) as running:
        wire.make_space(running, "a")
        yield running


@pytest.mark.parametrize("declared", DECLARED, ids=IDS)
def test_object_is_created_changed_and_renamed(node: DriverNode, declared: DeclaredKind) -> None:
    """A change sets what it names; each own field can be set to its default again."""
    url = collection(declared)
    example = dict(declared.example)

    created = node.done("POST", url, {"name": "x", "comment": "weekly", "properties": {"k": "v"}, **example})
    renamed = node.done("PUT", f"{url}/x", {"name": "y", "sets": {"z": "1"}, "removes": ["k"]})
    old = node.get(f"{url}/x").status
    defaults = {each: node.done("PUT", f"{url}/y", {each: default})[each] for each, default in _defaults(declared)}

    assert example.items() <= created.items()
    assert example.items() <= renamed.items()
    assert (renamed["name"], renamed["comment"], renamed["properties"]) == ("y", "weekly", {"z": "1"})
    assert old == 404
    assert defaults == dict(_defaults(declared))
    assert [each["name"] for each in node.get(url).json()[declared.plural]] == ["y"]


@pytest.mark.parametrize("declared", DECLARED, ids=IDS)
def test_dropped_object_is_restored_with_its_fields(node: DriverNode, declared: DeclaredKind) -> None:
    """A dropped object lies in the trash, and comes back with its own fields."""
    url = collection(declared)
    node.done("POST", url, {"name": "x", **declared.example})

    node.done("DELETE", f"{url}/x")
    status = node.get(f"{url}/x").status
    (trash,) = node.get(f"{OWN}/metalakes/lake/catalogs/main/trash").json()["trash"]
    node.done("POST", f"{OWN}/metalakes/lake/catalogs/main/trash/{trash['id']}/undrop")
    restored = node.get(f"{url}/x").json()

    assert (status, trash["kind"]) == (404, declared.kind.word)
    assert declared.example.items() <= restored.items()


@pytest.mark.room("search")
@pytest.mark.parametrize("declared", DECLARED, ids=IDS)
def test_object_is_found_by_a_word_of_its_comment(node: DriverNode, declared: DeclaredKind) -> None:
    """The search finds an object by a word of its comment."""
    node.done("POST", collection(declared), {"name": "x", "comment": "weekly figures"})
    while node.runner.run(index_step(node.built.services)):
        pass

    matches = node.get(f"{OWN}/metalakes/lake/search?q=figures").json()

    assert [(each["kind"], each["path"]) for each in matches["hits"]] == [(declared.kind.word, ["main", "a", "x"])]


@pytest.mark.parametrize("declared", DECLARED, ids=IDS)
def test_unknown_field_is_refused(node: DriverNode, declared: DeclaredKind) -> None:
    """A field that the kind does not have is 400, and nothing is created."""
    answer = node.post(collection(declared), {"name": "x", "odd": 1})

    assert answer.status == 400
    assert "odd" in answer.json()["error"]["message"]
    assert node.get(f"{collection(declared)}/x").status == 404


@pytest.mark.parametrize("address", ["javascript:alert(1)", "ftp://example.com", "https://a b"])
def test_dashboard_has_the_url_of_a_page(node: DriverNode, address: str) -> None:
    """The URL of a dashboard is one of HTTP, because pages link to it."""
    answer = node.post(f"{OWN}/metalakes/lake/catalogs/main/dashboards/a", {"name": "x", "url": address})

    assert answer.status == 400
    assert "url" in answer.json()["error"]["message"]


def _defaults(declared: DeclaredKind) -> list[tuple[str, object]]:
    default = declared.fields()
    values = [(name, getattr(default, name)) for name in declared.fields.__struct_fields__]
    return [(name, list(value) if isinstance(value, tuple) else value) for name, value in values]
