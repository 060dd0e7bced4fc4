# SPDX-License-Identifier: Apache-2.0
"""Dropping objects in the console: the confirmation page, the drop into the trash, and refusals."""

from __future__ import annotations

from pathlib import Path

import pytest

from limnos.config.storage import SourcesSection
from limnos.model.kinds import Kind, ZoneKind
from limnos.rooms.console.http.object_tabs import DROPPABLE
from limnos.rooms.console.http.trash import drops
from tests.http.driver import API, DriverNode, grant, node_at
from tests.rooms.console.http.conftest import ICEBERG, add_table
from tests.rooms.console.http.visitor import ConsoleVisitor, text_of

LAKE = f"{API}/lake"
FLIGHTS = "table/lake/main/raw/flights"
VIEW = {
    "name": "late",
    "schema": {"type": "struct", "fields": []},
    "properties": {},
    "view-version": {
        "version-id": 1,
        "schema-id": 0,
        "timestamp-ms": 1,
        "summary": {},
        "default-namespace": ["raw"],
        "representations": [{"type": "sql", "sql": "SELECT 1", "dialect": "spark"}],
    },
}


def catalog(node: DriverNode, name: str, **fields: object) -> None:
    """Create a catalog with the schema `s`."""
    node.done("POST", f"{LAKE}/catalogs", {"name": name, "properties": {}, **fields})
    node.done("POST", f"{LAKE}/catalogs/{name}/schemas", {"name": "s"})


NOT_DROPPED = {
    Kind.COLUMN: "a change of its table removes it",
    Kind.FUNCTION: "DROP FUNCTION of SQL++ checks what depends on it",
    Kind.DATATYPE: "DROP TYPE of SQL++ checks what depends on it",
    Kind.SYNONYM: "DROP SYNONYM of SQL++",
    Kind.EXTERNAL_DATASET: "DROP DATASET of SQL++ checks what depends on it",
}
"""Kinds of the tree without a drop in the console, with the reason."""


def test_drop_links_match_the_kinds_of_the_drop_route() -> None:
    """The kinds with a drop link are the kinds that the drop route can drop."""
    assert set(drops._DROPS) == DROPPABLE


@pytest.mark.parametrize("kind", [each for each in Kind if each.home is ZoneKind.CATALOG], ids=lambda kind: kind.word)
def test_each_kind_of_the_tree_is_dropped_or_has_a_reason(kind: Kind) -> None:
    """Each kind of the tree has a function in `_DROPS` or a reason in `NOT_DROPPED`."""
    assert (kind in drops._DROPS) is not (kind in NOT_DROPPED), f"_DROPS or NOT_DROPPED needs the kind {kind.word}"


def test_dropped_table_is_in_the_trash(admin: ConsoleVisitor) -> None:
    """The table's page links to a confirmation page that describes the drop. After the drop the table is in the
    trash.
    """
    link = f"/console/drop/{FLIGHTS}"
    assert link in admin.read(f"/console/o/{FLIGHTS}").hrefs
    before = admin.read(link)
    assert ("post", link) in before.actions
    assert "It is in the trash for 7 days, and can be restored" in before.text
    assert "Its files are not deleted before that" in before.text
    assert admin.get(f"/console/o/{FLIGHTS}").status == 200

    done = admin.post(link, {})

    assert done.status == 303
    assert done.headers["location"].startswith("/console/o/namespace/lake/main/raw?done=")
    assert "main.raw.flights is dropped" in admin.read(done.headers["location"]).text
    assert admin.get(f"/console/o/{FLIGHTS}").status == 404
    assert "main.raw.flights" in admin.read("/console/trash?catalog=main").text
    assert admin.post(link, {}).status == 404


def test_each_kind_is_dropped(admin: ConsoleVisitor) -> None:
    """Views, models, filesets, topics, Lance tables and empty namespaces can be dropped."""
    node = admin.node
    node.done("POST", f"{ICEBERG}/namespaces/raw/views", VIEW)
    catalog(node, "models", type="MODEL", provider="model")
    node.done("POST", f"{LAKE}/catalogs/models/schemas/s/models", {"name": "m"})
    catalog(node, "files", type="FILESET", provider="fileset")
    node.done("POST", f"{LAKE}/catalogs/files/schemas/s/filesets", {"name": "f", "type": "MANAGED"})
    node.done("POST", f"{ICEBERG}/namespaces", {"namespace": ["empty"]})

    for path in (
        "view/lake/main/raw/late",
        "model/lake/models/s/m",
        "fileset/lake/files/s/f",
        "namespace/lake/main/empty",
    ):
        link = f"/console/drop/{path}"
        assert link in admin.read(f"/console/o/{path}").hrefs, path
        assert ("post", link) in admin.read(link).actions
        assert admin.post(link, {}).status == 303, path
        assert admin.get(f"/console/o/{path}").status == 404


def test_namespace_with_content_cannot_be_dropped(admin: ConsoleVisitor) -> None:
    """The confirmation page of a namespace with content counts the visible objects and has no form. The POST is
    refused.
    """
    page = admin.read("/console/drop/namespace/lake/main/raw")

    assert "It contains 2 objects. Drop these first." in page.text
    assert ("post", "/console/drop/namespace/lake/main/raw") not in page.actions
    assert admin.post("/console/drop/namespace/lake/main/raw", {}).status == 409
    assert admin.get("/console/o/namespace/lake/main/raw").status == 200


def test_reader_cannot_drop_objects(lake: DriverNode) -> None:
    """A reader sees no drop link and no form, and their POST is refused. A hidden object is refused like a missing
    one.
    """
    add_table(lake, "raw", "hidden")
    grant(lake, "ana", "use_catalog use_schema", kind="CATALOG", on="main")
    grant(lake, "ana", "select_table", kind="TABLE", on="main.raw.flights")
    ana = ConsoleVisitor(lake).sign_in("ana")

    assert "/console/drop/" not in text_of(ana.get(f"/console/o/{FLIGHTS}"))
    page = ana.read(f"/console/drop/{FLIGHTS}")
    assert "You may not drop it" in page.text
    assert ("post", f"/console/drop/{FLIGHTS}") not in page.actions
    assert ana.post(f"/console/drop/{FLIGHTS}", {}).status == 403
    answers = {
        (ana.get(link).status, ana.post(link, {}).status)
        for link in (f"/console/drop/table/lake/main/raw/{name}" for name in ("hidden", "nothing"))
    }
    assert answers in ({(403, 403)}, {(404, 404)})
    assert ConsoleVisitor(lake).sign_in().get(f"/console/o/{FLIGHTS}").status == 200


def test_protected_table_cannot_be_dropped(admin: ConsoleVisitor) -> None:
    """The drop of a protected table is refused with this reason."""
    admin.node.done("PUT", "/api/limnos/v1/metalakes/lake/objects/table/main.raw.flights/protection")

    answer = admin.post(f"/console/drop/{FLIGHTS}", {})

    assert answer.status == 409
    assert "protected" in text_of(answer)


def test_objects_of_external_systems_cannot_be_dropped(admin: ConsoleVisitor, monkeypatch: pytest.MonkeyPatch) -> None:
    """Objects of external systems cannot be dropped, with this reason. A user who may not see the object is refused
    without the reason.
    """
    monkeypatch.setattr(drops, "is_sourced", lambda _: True)
    admin.node.done("POST", f"{LAKE}/users", {"name": "ana"})
    ana = ConsoleVisitor(admin.node).sign_in("ana")
    link = f"/console/drop/{FLIGHTS}"

    for answer in (admin.get(link), admin.post(link, {})):
        assert answer.status in {405, 406}
        assert "are in an external system" in text_of(answer)
    for answer in (ana.get(link), ana.post(link, {})):
        assert answer.status in {403, 404}
        assert "external" not in text_of(answer)
    assert admin.get(f"/console/o/{FLIGHTS}").status == 200


def test_an_empty_catalog_is_dropped(admin: ConsoleVisitor) -> None:
    """An empty catalog can be dropped without disabling it first. The page says that the drop cannot be undone; the
    page of a catalog with content has no form.
    """
    admin.node.done("POST", f"{LAKE}/catalogs", {"name": "files", "type": "FILESET", "provider": "fileset"})
    link = "/console/drop/catalog/lake/files"
    assert link in admin.read("/console/o/catalog/lake/files").hrefs
    page = admin.read(link)
    assert "cannot be restored" in page.text
    assert ("post", link) in page.actions
    full = admin.read("/console/drop/catalog/lake/main")
    assert "Drop these first" in full.text
    assert ("post", "/console/drop/catalog/lake/main") not in full.actions
    assert admin.post("/console/drop/catalog/lake/main", {}).status == 409

    done = admin.post(link, {})

    assert done.status == 303
    assert done.headers["location"].startswith("/console/?done=")
    assert "restored" not in done.headers["location"]
    assert admin.get("/console/o/catalog/lake/files").status == 404
    assert admin.get("/console/o/catalog/lake/main").status == 200


@pytest.mark.room("connectors")
def test_connector_catalog_with_content_can_be_dropped(tmp_path: Path) -> None:
    """A connector catalog can be dropped whatever its content, which stays in the external system. The system need not
    be reachable.
    """
    with node_at(tmp_path / "data", sources=SourcesSection(allowed_addresses=("127.0.0.1:9",), timeout_s=1.0)) as node:
        body = {"type": "RELATIONAL", "provider": "iceberg-rest", "properties": {"uri": "http://127.0.0.1:9/"}}
        node.done("POST", f"{LAKE}/catalogs", {"name": "far", **body})
        admin = ConsoleVisitor(node).sign_in()
        link = "/console/drop/catalog/lake/far"

        page = admin.read(link)

        assert "The external system or directory keeps them" in page.text
        assert admin.post(link, {}).status == 303
        assert admin.get("/console/o/catalog/lake/far").status == 404


def test_use_catalog_is_not_enough_to_drop_a_catalog(lake: DriverNode) -> None:
    """The privilege to use a catalog is not enough to drop it. A hidden catalog is refused like a missing one."""
    for name in ("files", "hidden"):
        lake.done("POST", f"{LAKE}/catalogs", {"name": name, "type": "FILESET", "provider": "fileset"})
    grant(lake, "ana", "use_catalog create_schema", kind="CATALOG", on="files")
    ana = ConsoleVisitor(lake).sign_in("ana")
    link = "/console/drop/catalog/lake/files"

    assert "/console/drop/" not in text_of(ana.get("/console/o/catalog/lake/files"))
    assert ("post", link) not in ana.read(link).actions
    assert ana.post(link, {}).status == 403
    answers = {
        (
            ana.get(f"/console/drop/catalog/lake/{name}").status,
            ana.post(f"/console/drop/catalog/lake/{name}", {}).status,
        )
        for name in ("hidden", "nothing")
    }
    assert len(answers) == 1
    assert ConsoleVisitor(lake).sign_in().get("/console/o/catalog/lake/files").status == 200


@pytest.mark.parametrize("path", ["catalog/lake/main/raw", "table/lake/main"])
def test_malformed_object_paths_are_refused(admin: ConsoleVisitor, path: str) -> None:
    """A catalog path with levels, and a table path without a namespace, are refused."""
    assert admin.get(f"/console/drop/{path}").status in {400, 404}
    assert admin.post(f"/console/drop/{path}", {}).status in {400, 404}
    assert admin.get("/console/o/catalog/lake/main").status == 200


def test_everybody_can_rename_and_drop_with_access_control_off(open_node: DriverNode) -> None:
    """With access control off the pages of a rename and of a drop have their forms for every user, and both
    succeed.
    """
    open_node.done("POST", f"{ICEBERG}/namespaces", {"namespace": ["raw"]})
    add_table(open_node, "raw", "flights")
    ana = ConsoleVisitor(open_node).sign_in("ana")
    link = f"/console/drop/{FLIGHTS}"
    rename = link.replace("/drop/", "/rename/")

    assert {link, rename} <= set(ana.read(f"/console/o/{FLIGHTS}").hrefs)
    assert ("post", link) in ana.read(link).actions
    assert ("post", rename) in ana.read(rename).actions
    assert ana.post(rename, {"name": "trips"}).status == 303
    assert ana.post(link.replace("flights", "trips"), {}).status == 303
    assert ana.get(f"/console/o/{FLIGHTS.replace('flights', 'trips')}").status == 404
