# SPDX-License-Identifier: Apache-2.0
"""Rooms that are off: their routes are refused with the reason, their tasks are left alone, and the rest works."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from unittest import mock

import pytest

from limnos.app.node_builder import DATABASE_FILE, build
from limnos.app.room_parts import require_usable_rooms
from limnos.config.active_rooms import rooms_of
from limnos.config.loading import load
from limnos.config.settings import ConfigError, Settings
from limnos.manifests.installed import BrokenEntry, InstalledRooms, installed_rooms
from limnos.model.errors import CannotStart
from tests.http.driver import API, OWN, DriverNode, grant, node_at
from tests.installed import has_room

LAKE = f"{OWN}/metalakes/lake"
ADDRESSES: dict[str, tuple[str, str]] = {
    "search": (f"{LAKE}/search?q=x", "admin"),
    "jobs": (f"{API}/lake/jobs/templates", "gravitino"),
    "lance": ("/lance/v1/namespace/main/list", "lance"),
    "exchange": (f"{OWN}/imports", "admin"),
    "gravitino": (f"{API}/lake/catalogs", "gravitino"),
    "sqlpp": ("/query/service?statement=1", "asterix"),
    "maintenance": (f"{LAKE}/catalogs/main/maintenance/findings", "admin"),
    "console": ("/console/", "console"),
    "pipelines": (f"{LAKE}/pipelines", "admin"),
}
"""An address of each room that has some, and the protocol in whose shape it is refused."""
INSTALLED = [each for each in ADDRESSES if has_room(each)]


def message_of(node: DriverNode, room: str) -> str:
    """Ask the address of a room. Return the message of the answer, which must be 404 in its protocol's own shape."""
    path, protocol = ADDRESSES[room]
    answer = node.get(path)
    assert answer.status == 404, (path, answer.body)
    if protocol == "console":
        assert answer.headers["content-type"] == "text/html; charset=utf-8"
        return answer.body.decode()
    body = answer.json()
    if protocol == "asterix":
        return str(body["errors"][0]["msg"])
    if protocol == "admin":
        assert body["error"]["code"] == "not-found"
        return str(body["error"]["message"])
    assert body["code"] == (1003 if protocol == "gravitino" else body["code"])
    return str(body["message"] if protocol == "gravitino" else body["detail"])


@pytest.mark.parametrize("room", INSTALLED)
def test_a_room_that_is_off_is_refused_with_the_reason(fresh: Callable[[str], Path], room: str) -> None:
    """Its address is 404 in the shape of its protocol and names the setting, by every method and without a credential.
    The addresses of all other rooms answer, and Iceberg REST and the own API do.
    """
    with node_at(fresh("data"), off=(room,)) as node:
        assert f"the setting rooms.off contains {room}" in message_of(node, room)
        path = ADDRESSES[room][0].partition("?")[0]
        for method in ("POST", "PUT", "PATCH", "DELETE"):
            assert node.ask(method, f"{path}?no_parameter=1", {"x": 1}).status == 404
            assert node.ask(method, f"{path}/further/down", user=None).status == 404
        assert node.ask("HEAD", path).status == 404

        hidden = {"jobs"} if room == "gravitino" else set()
        others = {each: node.get(ADDRESSES[each][0]).status for each in INSTALLED if each not in {room, *hidden}}
        assert set(others.values()) <= {200, 303}, others
        assert node.get("/iceberg/v1/lake.main/namespaces").status == 200
        assert node.get(f"{OWN}/whoami").status == 200


@pytest.mark.room("connectors")
def test_catalogs_of_external_systems_are_refused_without_connectors(fresh: Callable[[str], Path]) -> None:
    """Connectors have no addresses of their own: their catalogs are not created, and say why."""
    properties = {"uri": "http://127.0.0.1:1"}
    body = {"name": "far", "type": "RELATIONAL", "provider": "iceberg-rest", "properties": properties}
    with node_at(fresh("data"), off=("connectors",)) as node:
        answer = node.post(f"{API}/lake/catalogs", body)

    assert answer.status == 405
    assert "rooms.off" in answer.json()["message"]


@pytest.mark.room("console", "sqlpp")
def test_an_older_setting_switches_off_with_its_own_reason(tmp_path: Path) -> None:
    """`sqlpp.enabled` and `console.enabled` still switch their rooms off, and the reason names them."""
    settings = Settings.model_validate({"sqlpp": {"enabled": False}, "console": {"enabled": False}})

    off = {each.manifest.name: each.why for each in rooms_of(settings).off}

    assert off == {"sqlpp": "the setting sqlpp.enabled is false", "console": "the setting console.enabled is false"}


def test_a_name_that_is_no_room_is_refused(tmp_path: Path) -> None:
    """A misspelt name would leave a room on that was meant to be off."""
    names = tuple(each.name for each in installed_rooms().manifests)
    with pytest.raises(ConfigError, match=f"rooms.off.*there is no room 'lans'; installed are {', '.join(names)}"):
        load(flags={}, file=None, environ={"LIMNOS__ROOMS__OFF": f"lans, {names[0]}"})

    loaded = load(flags={}, file=None, environ={"LIMNOS__ROOMS__OFF": ", ".join(names[-2:])})
    assert loaded.settings.rooms.off == names[-2:]


@pytest.mark.room("exchange", "maintenance")
def test_tasks_of_a_room_that_is_off_are_left_to_other_nodes(fresh: Callable[[str], Path]) -> None:
    """A node without a room runs and counts none of its tasks, and inserts none; a node with it runs them."""
    data = fresh("data")
    with node_at(data, off=("exchange", "maintenance")) as node:
        node.runner.run(node.built.services.store.submit(node.built.upkeep._permit, _add_tasks))
        node.runner.run(node.built.upkeep.sweep())
        run_all(node)
        assert tasks(data) == {"prune-import": 0, "maintain-tables": 0}

    with node_at(data) as node:
        node.runner.run(node.built.upkeep.sweep())
        run_all(node)
        assert tasks(data).get("prune-import") is None


def run_all(node: DriverNode) -> None:
    """Run all due tasks, long ones as well."""
    for among in (False, True):
        while node.runner.run(node.built.upkeep.run_one(among_long=among)):
            pass


def _add_tasks(tx: object) -> None:
    tasks = tx.tasks  # type: ignore[attr-defined]
    tasks.create("prune-import", '{"import_id": 7}')
    tasks.create("maintain-tables", "{}")


def tasks(data: Path) -> dict[str, int]:
    """Return the attempts of the tasks of those two kinds in the store."""
    with closing(sqlite3.connect(data / DATABASE_FILE)) as connection:
        rows = connection.execute(
            "SELECT kind, attempts FROM task WHERE kind IN ('prune-import', 'prune-imports', 'maintain-tables',"
            " 'assess-tables')"
        )
        return dict(rows.fetchall())


@pytest.mark.room("console", "pipelines", "sqlpp")
def test_pages_of_other_rooms_vanish_from_the_console(fresh: Callable[[str], Path]) -> None:
    """The console links to no page of a room that is off, and says why an address of it has none."""
    with node_at(fresh("data"), off=("pipelines", "sqlpp")) as node:
        console = next(each for each in node.built.application.protocols if each.name == "console")
        texts = {each.text for each in _shown_pages(console)}
        answer = node.get("/console/worksheet")

    others = {text for room, text in (("jobs", "Jobs"), ("maintenance", "Maintenance")) if has_room(room)}
    assert {"Home"} | others <= texts
    assert not {"Pipelines", "Worksheet"} & texts
    assert answer.status == 404
    assert b"the setting rooms.off contains sqlpp" in answer.body


@pytest.mark.room("lance", "gravitino")
def test_lance_tables_are_refused_to_the_same_callers_without_their_room(fresh: Callable[[str], Path]) -> None:
    """Without the room, a Lance table is 405 for those who may load or read it, and refused to others as before."""
    data = fresh("data")
    load, preview = f"{API}/lake/catalogs/vec/schemas/s/tables/t", f"{LAKE}/catalogs/vec/tables/preview?table=s.t"
    users = ("admin", "ana", "ben", "cleo")
    with node_at(data) as node:
        body = {"name": "vec", "type": "RELATIONAL", "provider": "lakehouse-generic"}
        node.done("POST", f"{API}/lake/catalogs", body)
        node.done("POST", f"{API}/lake/catalogs/vec/schemas", {"name": "s"})
        node.done("POST", "/lance/v1/table/vec$s$t/declare", {})
        grant(node, "ana", "select_table", kind="schema", on="vec.s")
        grant(node, "ben", "use_catalog use_schema modify_table", kind="catalog", on="vec")
        grant(node, "cleo", "use_catalog use_schema", kind="catalog", on="vec")
        before = [[node.get(path, user=user).status for user in users] for path in (load, preview)]
    with node_at(data, off=("lance",)) as node:
        after = [[node.get(path, user=user).status for user in users] for path in (load, preview)]
        reason = node.get(load).json()["message"]

    refusals = [[status if status >= 400 else 405 for status in statuses] for statuses in before]
    assert [statuses[1:] for statuses in after] == [statuses[1:] for statuses in refusals]
    assert after == [[405, 403, 405, 403], [405, 403, 403, 403]]
    assert "does not serve Lance REST" in reason


def _shown_pages(console: object) -> list[object]:
    from limnos.rooms.console.http.navigation.console_pages import CONSOLE_PAGES

    return [each for each in CONSOLE_PAGES if each.is_openable(console.site, needs=frozenset())]  # type: ignore[attr-defined]


def test_a_broken_room_of_another_package_keeps_the_server_from_starting(tmp_path: Path) -> None:
    """The server does not start without what its operator installed, unless the operator switches it off."""
    broken = InstalledRooms(installed_rooms().manifests, (BrokenEntry("hills", "hills:ROOM", "ImportError: no"),))
    with (
        mock.patch("limnos.app.room_parts.installed_rooms", return_value=broken),
        mock.patch("limnos.config.room_settings.installed_rooms", return_value=broken),
    ):
        with pytest.raises(CannotStart, match="hills"):
            require_usable_rooms(Settings())
        with pytest.raises(CannotStart, match="hills"):
            build(Settings.model_validate({"server": {"data": str(tmp_path / "d")}}))
        assert not (tmp_path / "d").exists()
        off = Settings.model_validate({"rooms": {"off": "hills"}})

        assert len(require_usable_rooms(off).on) == len(installed_rooms().manifests)
