# SPDX-License-Identifier: Apache-2.0
"""The manifests of rooms are true: what they name exists, and is complete."""

from __future__ import annotations

import ast
import importlib
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from limnos.app.room_parts import protocols_of
from limnos.app.task_kind import TaskKind
from limnos.cli.operations import TOPICS
from limnos.client import Client
from limnos.config.settings import Settings, sections
from limnos.http.route_targets import Protocol, refusing_router
from limnos.http.routing import Route
from limnos.manifests.installed import installed_rooms
from limnos.manifests.manifest import Manifest, load
from limnos.manifests.switches import room_set
from limnos.model.kinds import Kind
from limnos.rooms.console.http.page_requests import ConsoleRoute
from limnos.store.schema import metadata

ROOT = Path(__file__).parents[2]
ROOMS = installed_rooms().manifests
of_rooms = pytest.mark.parametrize("room", ROOMS, ids=lambda room: room.name)


def texts(value: object) -> Iterator[str]:
    """Yield all texts in a manifest."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, tuple):
        for each in value:
            yield from texts(each)


def served() -> dict[str, Protocol]:
    """Return the protocols with all rooms by name."""
    return {each.name: each for each in protocols_of(Settings(), room_set())}


PROTOCOLS = served()


def own_paths(room: Manifest) -> set[str]:
    """Return the paths that a room serves."""
    paths = {
        PROTOCOLS[entry.protocol].router.root + route.path
        for entry in room.routes
        for route in cast("tuple[Route[object], ...]", load(entry.routes))
    }
    for entry in room.protocols:
        router = PROTOCOLS[entry.name].router
        mine = {router.root + route.path for route in router.routes}
        paths |= mine - {path for other in ROOMS if other is not room for path in shared_paths(other, entry.name)}
    return paths


def shared_paths(room: Manifest, protocol: str) -> set[str]:
    """Return the paths that a room adds to a protocol of another part."""
    return {
        PROTOCOLS[protocol].router.root + route.path
        for entry in room.routes
        if entry.protocol == protocol
        for route in cast("tuple[Route[object], ...]", load(entry.routes))
    }


def segments(path: str) -> list[bytes]:
    """Return the segments of a request for the path of a route."""
    return re.sub(r"\{\w+(\.\.\.)?\}", "x1", path).strip("/").encode().split(b"/")


@of_rooms
def test_every_reference_exists(room: Manifest) -> None:
    """Each text `module:name` of a manifest names something."""
    references = [text for text in texts(room) if re.fullmatch(r"[\w.]+:\w+", text)]

    assert [reference for reference in references if load(reference) is None] == []


@of_rooms
def test_a_room_that_is_off_refuses_exactly_its_own_paths(room: Manifest) -> None:
    """The patterns of a manifest match every route of the room, and none of another part."""
    patterns = [path for entry in room.routes for path in entry.paths]
    patterns += [path for entry in room.protocols for path in entry.paths]
    router = refusing_router(patterns, print)
    own = own_paths(room)
    others = {
        each.router.root + route.path
        for each in PROTOCOLS.values()
        for route in each.router.routes
        if each.router.root + route.path not in own
    }
    within = {path for entry in room.protocols for other in ROOMS for path in shared_paths(other, entry.name)}

    assert {path for path in own if router.find(segments(path)) is None} == set()
    assert {path for path in others - within if router.find(segments(path)) is not None} == set()


@of_rooms
def test_pages_of_the_console_are_complete(room: Manifest) -> None:
    """The patterns of pages match every page of the room."""
    router = refusing_router([path for entry in room.pages for path in entry.paths], print)
    paths = {route.path for entry in room.pages for route in cast("tuple[ConsoleRoute, ...]", load(entry.routes))}

    assert {path for path in paths if router.find(segments(path)) is None} == set()


@of_rooms
def test_tasks_tables_kinds_pages_and_settings_exist(room: Manifest) -> None:
    """Names of tasks, tables, kinds, settings and pages of the documentation are those of the product."""
    for entry in room.tasks:
        assert tuple(kind.name for kind in cast("tuple[TaskKind, ...]", load(entry.kinds))) == entry.names
    virtual = {"search_text", "search_words", "search_word"}
    assert set(room.tables) <= {*metadata.tables, *virtual}
    assert set(room.kinds) <= {kind.word for kind in Kind}
    assert all((ROOT / "docs" / page).is_file() for page in room.docs)
    assert all(sections()[entry.name] is load(entry.section) for entry in room.settings)
    assert not room.switch or isinstance(
        getattr(getattr(Settings(), room.switch.split(".")[0]), room.switch.split(".")[1]), bool
    )


def test_no_two_rooms_claim_the_same() -> None:
    """Tables, tasks, kinds, commands, settings, resources and pages belong to one room."""
    for claims in (
        [table for room in ROOMS for table in room.tables],
        [name for room in ROOMS for entry in room.tasks for name in entry.names],
        [kind for room in ROOMS for kind in room.kinds],
        [command.name for room in ROOMS for command in room.commands],
        [entry.name for room in ROOMS for entry in room.settings],
        [entry.attribute for room in ROOMS for entry in room.client],
        [page for room in ROOMS for page in room.docs],
    ):
        assert sorted(claims) == sorted(set(claims))


@of_rooms
def test_client_resources_and_topics_are_those_of_the_product(room: Manifest) -> None:
    """The client has each resource, of the class that the manifest names. Commands have a topic of the help page."""
    with Client("http://127.0.0.1:1", user="ana") as client:
        for entry in room.client:
            assert isinstance(getattr(client, entry.attribute), cast("type", load(entry.resource)))
    assert {each.topic for each in room.commands} <= set(TOPICS)


def test_rooms_import_what_manifests_offer() -> None:
    """A room imports of another room only modules that its manifest offers, which exist; and only its routes and pages
    do so. The contract allows exactly the same imports.
    """
    offers = {module for room in ROOMS for module in room.offers}
    contract = next(each for each in contracts() if each["id"] == "optional-rooms")

    assert {line.partition(" -> ")[2] for line in contract["ignore_imports"]} == offers
    assert all(
        re.fullmatch(r"limnos\.rooms\.\*\.(http|console)\.\*\* -> [\w.]+", line) for line in contract["ignore_imports"]
    )
    assert all(
        importlib.import_module(module).__name__.split(".")[2] == room.name for room in ROOMS for module in room.offers
    )


def contracts() -> list[dict[str, Any]]:
    """Return the contracts of import-linter."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    return cast("list[dict[str, Any]]", settings["tool"]["importlinter"]["contracts"])


def test_packages_of_a_room_are_imported_by_the_room_alone() -> None:
    """A package that a manifest names exists, and no other part of the product imports it."""
    sources = {
        ".".join(file.relative_to(ROOT / "src").with_suffix("").parts): file.read_text(encoding="utf-8")
        for file in (ROOT / "src").rglob("*.py")
    }
    owners = {package: room for room in ROOMS for package in room.packages}

    assert "limnos.pipeline" in owners
    for package, room in owners.items():
        imports = re.compile(rf"^ *(?:from|import) {re.escape(package)}\b", re.MULTILINE)
        own = tuple(f"{each}." for each in (f"limnos.rooms.{room.name}", *room.packages))
        assert f"{package}.__init__" in sources
        assert [each for each in sources if not each.startswith(own) and imports.search(sources[each])] == []


@of_rooms
def test_a_manifest_imports_manifests_alone(room: Manifest) -> None:
    """Reading a manifest imports no code of its room."""
    file = ROOT / "src" / "limnos" / "rooms" / room.name / "manifest.py"
    modules = {
        node.module
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom)
    }

    assert modules <= {"__future__", "typing", "limnos.manifests.manifest"}
