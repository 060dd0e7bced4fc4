# SPDX-License-Identifier: Apache-2.0
"""The tests of a room follow from its manifest, from imports and from the names of files."""

from __future__ import annotations

import pytest

from limnos.manifests.installed import installed_rooms
from limnos.manifests.manifest import Manifest, ProtocolEntry, SectionEntry
from tests import room_tests
from tests.house import tidy
from tests.house.one_pass import PRODUCT, Look

MENTIONS = Look(tidy.mentioned_modules, *PRODUCT)
GRAPH = {
    "limnos.rooms.sea.server": {"limnos.http.waves.routes", "limnos.store.rows", "limnos.services.fish"},
    "limnos.http.waves.routes": {"limnos.services.fish"},
    "limnos.services.fish": {"limnos.services.scales"},
    "limnos.app.server": {"limnos.store.rows"},
    "limnos.services.scales": set[str](),
    "limnos.store.rows": set[str](),
}
SEA = Manifest(
    name="sea",
    about="Water",
    protocols=(ProtocolEntry(name="tides", protocol="a:b", paths=(), error="a:c"),),
    settings=(SectionEntry(name="ships", section="a:D"),),
)


def test_modules_that_only_the_room_imports_are_its_own() -> None:
    """A module that another part imports is not the room's, and a module behind an own one is."""
    assert room_tests.own_modules("sea", GRAPH) == {
        "limnos.rooms.sea.server",
        "limnos.http.waves.routes",
        "limnos.services.fish",
        "limnos.services.scales",
    }


@pytest.mark.parametrize(
    "test, is_own",
    [
        ("tests/http/waves/test_routes.py", True),
        ("tests/services/test_fish.py", True),
        ("tests/services/test_fish_nets.py", True),
        ("tests/services/scales/test_weights.py", True),
        ("tests/integration/test_sea_storms.py", True),
        ("tests/http/tides/test_errors.py", True),
        ("tests/ships/test_sails.py", True),
        ("tests/http/ships/test_sails.py", False),
        ("tests/store/test_rows.py", False),
        ("tests/services/test_fishing.py", False),
    ],
)
def test_tests_of_a_room_are_chosen_by_path(test: str, is_own: bool) -> None:
    """Tests of own modules, of the room's name, protocol and settings are chosen, and no others."""
    assert list(room_tests.tests_of(SEA, GRAPH, [test])) == [test] * is_own


def test_every_room_has_tests_of_its_own() -> None:
    """Each installed room has test modules, and only some of all; the tests of Lance REST are those of its room."""
    modules = {tidy.SourceFile(path, "").module: names for path, names in MENTIONS.results.items()}
    graph = {module: names & modules.keys() for module, names in modules.items()}
    tests = room_tests.test_modules()
    chosen = {each.name: list(room_tests.tests_of(each, graph, tests)) for each in installed_rooms().manifests}

    assert {name: len(of_room) for name, of_room in chosen.items() if not 0 < len(of_room) < len(tests) / 3} == {}
    assert "tests/rooms/lance/http/test_refusals.py" in chosen["lance"]
    assert "tests/rooms/sqlpp/engine/test_statements.py" in chosen["sqlpp"]
    assert "tests/http/iceberg/test_tables.py" not in {test for of_room in chosen.values() for test in of_room}


def test_unknown_room_is_refused() -> None:
    """The error for an unknown room names the known ones."""
    with pytest.raises(SystemExit, match="no such room; one of connectors"):
        room_tests.modules_of("lake")
