# SPDX-License-Identifier: Apache-2.0
"""The trash page: dropped objects and a restore button, for users who may restore them."""

from __future__ import annotations

import pytest

from limnos.rooms.console.http.trash import trash
from tests.http.driver import API, DriverNode, grant
from tests.rooms.console.http.conftest import ICEBERG
from tests.rooms.console.http.visitor import ConsoleVisitor, PageReader, text_of


def dropped_id(visitor: ConsoleVisitor) -> str:
    """Return the id of the only dropped object."""
    page = text_of(visitor.get("/console/trash?catalog=main"))
    (trash_id,) = [piece.split('"')[0] for piece in page.split('name="id" value="')[1:]]
    return trash_id


def test_dropped_table_can_be_restored(admin: ConsoleVisitor) -> None:
    """A dropped table is listed. Restoring it redirects to its page with a notice."""
    assert "Nothing that you may restore" in admin.read("/console/trash?catalog=main").text
    assert admin.node.ask("DELETE", f"{ICEBERG}/namespaces/raw/tables/flights").status == 204

    answer = admin.post("/console/trash/restore", {"metalake": "lake", "catalog": "main", "id": dropped_id(admin)})

    assert answer.status == 303
    assert answer.headers["location"].startswith("/console/o/table/lake/main/raw/flights?done=")
    assert "main.raw.flights is back" in admin.read(answer.headers["location"]).text


def test_reader_cannot_restore_dropped_objects(lake: DriverNode) -> None:
    """A reader sees no dropped object, and a POST with its id is refused."""
    grant(lake, "ana", "use_catalog use_schema select_table", kind="CATALOG", on="main")
    admin = ConsoleVisitor(lake).sign_in()
    lake.ask("DELETE", f"{ICEBERG}/namespaces/raw/tables/flights")
    ana = ConsoleVisitor(lake).sign_in("ana")

    answer = ana.post("/console/trash/restore", {"metalake": "lake", "catalog": "main", "id": dropped_id(admin)})

    assert "Nothing that you may restore" in ana.read("/console/trash?catalog=main").text
    assert answer.status in {403, 404}
    assert dropped_id(admin)


def test_unknown_trash_id_is_refused(admin: ConsoleVisitor) -> None:
    """A malformed id is 400, and one that is not in the trash 404."""
    for text, status in (("x", 400), ("999999", 404)):
        answer = admin.post("/console/trash/restore", {"metalake": "lake", "catalog": "main", "id": text})
        assert answer.status == status


def test_dropped_objects_of_all_catalogs_are_listed_by_default(admin: ConsoleVisitor) -> None:
    """Without a catalog in the URL, the page lists the newest dropped objects of all catalogs, which can be
    restored.
    """
    admin.node.done(
        "POST", f"{API}/lake/catalogs", {"name": "alpha", "type": "RELATIONAL", "provider": "lakehouse-iceberg"}
    )
    admin.node.ask("DELETE", f"{ICEBERG}/namespaces/raw/tables/flights")

    page = admin.read("/console/trash?metalake=lake")
    only = admin.read("/console/trash?metalake=lake&catalog=alpha")

    assert "main.raw.flights" in page.text
    assert ("value", "main") in page.attributes
    assert "Nothing that you may restore is in the trash of this catalog" in only.text


def test_page_of_a_missing_object_links_to_the_trash(admin: ConsoleVisitor) -> None:
    """The page of a missing object links to the trash, whether or not the object was dropped."""
    admin.node.ask("DELETE", f"{ICEBERG}/namespaces/raw/tables/flights")

    for name in ("flights", "nothing"):
        answer = admin.get(f"/console/o/table/lake/main/raw/{name}")
        assert answer.status == 404
        assert "/console/trash?metalake=lake" in PageReader(text_of(answer)).hrefs
    assert "/console/trash?metalake=lake" not in text_of(admin.get("/console/nothing")).partition("<main")[2]


@pytest.mark.parametrize("empty", ["a_first", "z_last"])
def test_page_reports_further_dropped_objects_of_a_catalog(
    admin: ConsoleVisitor, monkeypatch: pytest.MonkeyPatch, empty: str
) -> None:
    """If one catalog has more dropped objects than the page shows, the page says so, whichever catalog is read last."""
    body = {"name": empty, "type": "RELATIONAL", "provider": "lakehouse-iceberg"}
    admin.node.done("POST", f"{API}/lake/catalogs", body)
    for table in ("raw/tables/flights", "raw%1Fnyc/tables/hops"):
        assert admin.node.delete(f"{ICEBERG}/namespaces/{table}").status == 204
    whole = admin.read("/console/trash?metalake=lake").text
    monkeypatch.setattr(trash, "SHOWN", 1)

    page = admin.read("/console/trash?metalake=lake").text

    assert "shows all" not in whole
    assert "The newest 1 are shown; limnos list trash shows all." in page
