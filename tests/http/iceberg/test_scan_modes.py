# SPDX-License-Identifier: Apache-2.0
"""The scan planning mode for clients: from a property of the table or its catalog, in config and load answers."""

from __future__ import annotations

import pytest

from tests.http.driver import API, OWN, DriverNode, grant
from tests.http.iceberg.wire import ROOT, commit, make_space, make_table, set_properties, space_path, table_path

MODE = "scan-planning-mode"
HOME = table_path("a", "t")


def alter(node: DriverNode, *updates: dict[str, str]) -> None:
    """Alter the catalog."""
    node.done("PUT", f"{API}/lake/catalogs/main", {"updates": list(updates)})


def catalog_says(node: DriverNode, mode: str) -> None:
    """Set the property of the catalog."""
    alter(node, {"@type": "setProperty", "property": MODE, "value": mode})


def loaded_mode(node: DriverNode, path: str = HOME) -> object:
    """Return the planning mode in a load's configuration."""
    return node.done("GET", path)["config"].get(MODE)  # type: ignore[union-attr]


def configured(node: DriverNode) -> object:
    """Return the planning mode in the answer to `GET /v1/config`."""
    return node.done("GET", "/iceberg/v1/config?warehouse=main")["defaults"].get(MODE)  # type: ignore[union-attr]


def test_mode_is_chosen_by_the_client_by_default(lake: DriverNode) -> None:
    """If neither table nor catalog has the property, the client chooses the mode."""
    make_table(lake, "a", "t")

    assert (loaded_mode(lake), configured(lake)) == (None, None)


def test_table_property_sets_the_mode(lake: DriverNode) -> None:
    """A table's property is in its next load answer, with another ETag, by whichever route the table was created."""
    make_table(lake, "a", "t")
    before = lake.get(HOME).headers["etag"]

    commit(lake, "a", "t", updates=[set_properties(**{MODE: "server"})])
    created = lake.done(
        "POST",
        f"{space_path('a')}/tables",
        {"name": "u", "schema": {"type": "struct", "fields": []}, "properties": {MODE: "client"}},
    )

    assert loaded_mode(lake) == "server"
    assert lake.get(HOME, if_none_match=before).status == 200
    assert created["config"] == {MODE: "client"}


def test_catalog_property_sets_the_default_mode(lake: DriverNode) -> None:
    """The catalog's property applies from the next request on to tables without the property, and is in the
    configuration.
    """
    make_table(lake, "a", "t")
    make_table(lake, "a", "own", properties={MODE: "client"})
    first = lake.get(HOME)
    assert lake.get(HOME, if_none_match=first.headers["etag"]).status == 304

    catalog_says(lake, "server")
    changed = lake.get(HOME, if_none_match=first.headers["etag"])

    assert (changed.status, changed.json()["config"]) == (200, {MODE: "server"})
    assert lake.get(HOME, if_none_match=changed.headers["etag"]).status == 304
    assert (loaded_mode(lake, table_path("a", "own")), configured(lake)) == ("client", "server")
    alter(lake, {"@type": "removeProperty", "property": MODE})
    assert (loaded_mode(lake), configured(lake)) == (None, None)
    assert lake.get(HOME, if_none_match=changed.headers["etag"]).status == 200


def test_invalid_mode_is_refused_in_catalog_and_ignored_in_table(lake: DriverNode) -> None:
    """An invalid mode is refused in a catalog's properties. In a table's properties, which clients set, it is
    ignored.
    """
    refused = lake.put(
        f"{API}/lake/catalogs/main", {"updates": [{"@type": "setProperty", "property": MODE, "value": "Server"}]}
    )
    body = {
        "name": "other",
        "type": "RELATIONAL",
        "provider": "lakehouse-iceberg",
        "comment": "",
        "properties": {MODE: ""},
    }

    make_table(lake, "a", "t", properties={MODE: "sideways"})
    assert refused.status == 400
    assert "client or server" in refused.json()["message"]
    assert lake.post(f"{API}/lake/catalogs", body).status == 400
    assert loaded_mode(lake) is None


@pytest.mark.parametrize("size", [10, 400_000])
def test_mode_is_read_from_documents_of_any_size(lake: DriverNode, size: int) -> None:
    """The property is read from documents of any size, and not from other properties' values."""
    make_space(lake, "a")
    schema = {"type": "struct", "fields": []}
    for name, more in (("t", {MODE: "server"}), ("u", {"note": f'"{MODE}":"server"'})):
        body = {"name": name, "schema": schema, "properties": {"filler": "x" * size, **more}}
        assert lake.post(f"{ROOT}/namespaces/a/tables", body).status == 200

    assert (loaded_mode(lake), loaded_mode(lake, table_path("a", "u"))) == ("server", None)


def test_restricted_callers_are_configured_for_the_server(lake: DriverNode) -> None:
    """A caller to whom a restriction of the catalog applies gets the mode `server` for all tables, as PyIceberg reads
    it for the catalog only. The catalog's owner, exempt users, and users whom it does not name, keep the catalog's.
    """
    make_table(lake, "a", "t")
    for user in ("bob", "eve"):
        grant(lake, user, "use_catalog use_schema select_table", kind="catalog", on="main")
    restrictions = f"{OWN}/metalakes/lake/objects/TABLE/main.a.t/restrictions"

    def modes() -> list[object]:
        path = "/iceberg/v1/config?warehouse=main"
        return [lake.done("GET", path, user=user)["defaults"].get(MODE) for user in ("bob", "eve", "admin")]  # type: ignore[union-attr]

    assert modes() == [None, None, None]
    lake.done("PUT", f"{restrictions}/r", {"masks": {"city": "replace-with-null"}, "to": {"users": ["bob"]}})
    catalog_says(lake, "client")
    assert modes() == ["server", "client", "client"]
    lake.done("PUT", f"{restrictions}/r", {"masks": {"city": "replace-with-null"}, "except": {"users": ["bob"]}})
    assert modes() == ["client", "server", "client"]
    lake.done("DELETE", f"{restrictions}/r")
    assert modes() == ["client", "client", "client"]
