# SPDX-License-Identifier: Apache-2.0
"""The tests of a room follow from its manifest, from imports and from the names of files."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from limnos.manifests.installed import installed_rooms
from limnos.manifests.manifest import Manifest, ProtocolEntry, SectionEntry
from scripts.without_room import room_folders, rooms_in_turn
from tests import room_tests
from tests.house import tidy
from tests.house.one_pass import PRODUCT, Look
from tests.installed import ALL_ROOMS

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


def test_each_pair_of_rooms_has_its_turn() -> None:
    """Numbers that follow each other select all pairs of different rooms, and each room as often."""
    pairs = [rooms_in_turn(ALL_ROOMS, number) for number in range(90)]

    assert len(set(pairs)) == 90
    assert {(pairs.count(pair), pair[0] == pair[1]) for pair in pairs} == {(1, False)}
    assert {sum(room in pair for pair in pairs) for room in ALL_ROOMS} == {18}


def test_folders_of_a_room_include_its_packages() -> None:
    """The driver of pipelines goes with its room, in the product and in the tests."""
    assert set(room_folders("pipelines")) == {
        f"{top}/{folder}/" for top in ("src/limnos", "tests") for folder in ("rooms/pipelines", "pipeline")
    }


MODULE = """
import pytest
from tests.http.driver import API, node_at
from tests.installed import MissingRoom, require_address

@pytest.fixture
def trips():
    require_address("GET", "/api/sea/trips")

def test_setup_needs_the_room(trips): pass
def test_request_needs_the_room():
    try:
        require_address("HEAD", "/api/sea/trips")
    except Exception:
        pass
def test_request_of_the_kernel_runs(): require_address("POST", "/api/sea/trips")
def test_wrong_expectation_fails(): assert require_address("GET", "/api/lake") == 1
"""


def test_requests_to_an_absent_room_leave_their_test_out(tmp_path: Path) -> None:
    """A test or a fixture that sends a request to a room which is not installed is counted apart; others run."""
    (tmp_path / "test_sea.py").write_text(MODULE, encoding="utf-8")
    absent = "import re, tests.installed as i; i._absent_addresses = lambda: (('GET', re.compile('/api/sea/[a-z]+')),)"
    (tmp_path / "sea.py").write_text(absent, encoding="utf-8")
    words = ("-q", "-p", "no:xdist", "-p", "no:cacheprovider", "-p", "tests.conftest", "-p", "sea", str(tmp_path))
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "--rootdir", str(tmp_path), *words],
        cwd=root,
        env={"PATH": "/usr/bin", "PYTHONPATH": f"{root}:{tmp_path}"},
        capture_output=True,
        text=True,
        check=False,
    )

    assert "1 failed, 1 passed, 2 need the room" in done.stdout, done.stdout + done.stderr
    assert done.returncode == 1
