# SPDX-License-Identifier: Apache-2.0
"""The trash over HTTP: objects dropped without purge are restored by id; pages of the list; invalid requests."""

from __future__ import annotations

from pathlib import Path

import pytest

from limnos.services.upkeep import trash
from tests.http.driver import API, OWN, DriverNode, grant
from tests.http.iceberg.wire import (
    SPACES,
    files_of,
    make_space,
    make_table,
    make_view,
    metadata_of,
    space_path,
    table_path,
    view_path,
)
from tests.http.test_coverage import FUNCTION
from tests.installed import has_room

TRASH = f"{OWN}/metalakes/lake/catalogs/main/trash"


def dropped(node: DriverNode, *levels: str) -> int:
    """Create a table, drop it, and return its id in the trash."""
    make_table(node, *levels)
    assert node.delete(table_path(*levels)).status == 204
    return int(str(node.get(TRASH).json()["trash"][0]["id"]))


def undrop(node: DriverNode, number: object, **body: object) -> tuple[int, dict]:
    """Restore an object. Returns the status and the answer."""
    answer = node.post(f"{TRASH}/{number}/undrop", body)
    return answer.status, answer.json()


def test_restored_table_has_its_metadata_and_etag(node: DriverNode) -> None:
    """The restored table has its former metadata and ETag. The list shows it with the end of its retention."""
    make_table(node, "a", "t")
    before, tag = metadata_of(node, "a", "t"), node.get(table_path("a", "t")).headers["etag"]
    node.delete(table_path("a", "t"))
    (entry,) = node.get(TRASH).json()["trash"]
    status, answer = undrop(node, entry["id"])

    assert (entry["kind"], entry["path"], entry["dropped_by"]) == ("table", ["main", "a", "t"], "admin")
    assert entry["dropped_at"] < entry["expires_at"]
    assert (status, answer) == (200, {"kind": "table", "path": ["main", "a", "t"], "contents": 0, "left": 0})
    assert metadata_of(node, "a", "t") == before
    assert node.get(table_path("a", "t"), if_none_match=tag).status == 304
    assert node.get(TRASH).json() == {"trash": [], "before": None}


def test_list_is_paged_and_filtered_by_path(node: DriverNode) -> None:
    """Pages have the requested size and continue at the cursor. A path lists the objects dropped below it."""
    for name in ("t", "u"):
        dropped(node, "a", name)
    dropped(node, "b c", "v")
    first = node.get(f"{TRASH}?limit=2").json()
    second = node.get(f"{TRASH}?limit=2&before={first['before']}").json()
    below = node.get(f"{TRASH}?below=%60b%20c%60").json()

    assert [each["path"][-1] for each in (*first["trash"], *second["trash"])] == ["v", "u", "t"]
    assert second["before"] is None
    assert [each["path"] for each in below["trash"]] == [["main", "b c", "v"]]


@pytest.mark.parametrize("query", ["before=x", "before=1-", "limit=0", "limit=-1", "limit=ten", "below=a..b"])
def test_invalid_query_is_400(node: DriverNode, query: str) -> None:
    """An invalid cursor, limit or path is 400."""
    assert node.get(f"{TRASH}?{query}").status == 400


def test_refused_restore_leaves_the_object_in_the_trash(node: DriverNode) -> None:
    """An unknown id, a name in use and an invalid target each have their own status and message, and nothing is
    restored.
    """
    number = dropped(node, "a", "t")
    make_table(node, "a", "t")
    answers = {
        "none": undrop(node, 1),
        "no id": undrop(node, "x"),
        "taken": undrop(node, number),
        "no place": undrop(node, number, to=["gone", "t"]),
        "short": undrop(node, number, to=["t"]),
        "contents": undrop(node, number, to=["a", "u"], contents=True),
        "unknown": undrop(node, number, where="a"),
    }

    assert {case: (status, body["error"]["code"]) for case, (status, body) in answers.items()} == {
        "none": (404, "not-found"),
        "no id": (404, "not-found"),
        "taken": (409, "already-exists"),
        "no place": (404, "not-found"),
        "short": (400, "bad-request"),
        "contents": (400, "bad-request"),
        "unknown": (400, "bad-request"),
    }
    assert "under another name" in answers["taken"][1]["error"]["message"]
    assert undrop(node, number, to=["a", "u"])[0] == 200


def test_register_of_the_metadata_removes_the_table_from_trash(node: DriverNode) -> None:
    """The user who dropped a table may register its metadata file again, which removes the table from the trash."""
    location = make_table(node, "a", "t")["metadata-location"]
    node.delete(table_path("a", "t"))
    answer = node.post(f"{space_path('a')}/register", {"name": "again", "metadata-location": location})

    assert answer.status == 200, answer.body
    assert node.get(TRASH).json()["trash"] == []


def test_namespace_is_dropped_and_restored_with_its_tables(node: DriverNode) -> None:
    """A namespace whose tables are in the trash counts as empty. It is restored with them."""
    make_space(node, "a", k="v")
    dropped(node, "a", "t")
    assert node.delete(f"{SPACES}/a").status == 204
    number = node.get(TRASH).json()["trash"][0]["id"]

    assert undrop(node, number, contents=True) == (
        200,
        {"kind": "namespace", "path": ["main", "a"], "contents": 1, "left": 0},
    )
    assert node.get(table_path("a", "t")).status == 200
    assert node.get(f"{SPACES}/a").json()["properties"]["k"] == "v"


def test_location_is_free_after_deletion_from_the_trash(node: DriverNode) -> None:
    """An object deleted from the trash cannot be restored. Its files stay, and other tables may use its location."""
    make_space(node, "a")
    location = str(make_table(node, "a", "t")["metadata"]["location"])  # type: ignore[index]
    node.delete(table_path("a", "t"))
    files, number = files_of(node), node.get(TRASH).json()["trash"][0]["id"]
    answers = [node.delete(f"{TRASH}/{number}").status for _ in range(2)]

    assert answers == [200, 404]
    assert undrop(node, number)[0] == 404
    assert files_of(node) == files
    assert make_table(node, "a", "u", location=location)


def test_view_is_restored_unchanged(node: DriverNode) -> None:
    """A view can be restored from the trash, unchanged."""
    make_view(node, "a", "v")
    before = node.get(view_path("a", "v")).json()
    node.delete(view_path("a", "v"))
    (entry,) = node.get(TRASH).json()["trash"]

    assert entry["kind"] == "view"
    assert undrop(node, entry["id"])[0] == 200
    assert node.get(view_path("a", "v")).json() == before


def test_purged_objects_are_not_in_the_trash(node: DriverNode, tmp_path: Path) -> None:
    """Objects dropped with purge are not in the trash."""
    make_table(node, "a", "t")
    node.delete(f"{table_path('a', 't')}?purgeRequested=true")
    node.runner.run(node.built.upkeep.run_one())

    assert node.get(TRASH).json()["trash"] == []
    assert files_of(node) == []


def test_pages_reveal_no_hidden_objects(node: DriverNode, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages contain only objects that the caller may restore, and reveal nothing about others between them."""
    monkeypatch.setattr(trash, "SLICE_MAX", 2)
    grant(node, "ana", "use_catalog use_schema", kind="CATALOG", on="main")
    grant(node, "eve", "use_catalog", kind="CATALOG", on="main")
    for name in ("t", "u", "v", "w", "x"):
        make_table(node, "a", name)
        if name in ("t", "w"):
            node.done("PUT", f"{API}/lake/owners/TABLE/main.a.{name}", {"name": "ana", "type": "USER"})
        node.delete(table_path("a", name))
    ids = {each["path"][-1]: each["id"] for each in node.done("GET", TRASH)["trash"]}
    pages, before = [], ""
    for _ in range(5):
        page = node.done("GET", f"{TRASH}?limit=1{before}", user="ana")
        pages.append([each["id"] for each in page["trash"]])
        if page["before"] is None:
            break
        assert page["before"].endswith(f"-{pages[-1][0]}")
        before = f"&before={page['before']}"

    assert pages in ([[ids["w"]], [ids["t"]]], [[ids["w"]], [ids["t"]], []])
    assert node.done("GET", f"{TRASH}?limit=1", user="eve") == {"trash": [], "before": None}


CATALOGS = {"fileset": "fileset", "topic": "messaging", "model": "model"}
"""Kinds of objects that have catalogs of their own, with the types of these catalogs."""
MAKES = "create_table create_view create_fileset create_topic register_model register_function"


def drop_objects_of_sqlpp(node: DriverNode, files: Path) -> set[str]:
    """Create objects of SQL++ as ana, and drop them. Returns their kinds."""
    defaults = node.built.services.defaults
    node.built.services.defaults = defaults._replace(file_roots=(f"file://{files}",))
    statement = (
        "create type a.d as { id: int }; create view a.v as select value 1; create synonym a.s for a.v;"
        f" create external dataset a.e(d) using localfs (('path'='{files}'), ('format'='json'));"
        " drop dataset a.e; drop synonym a.s; drop view a.v; drop type a.d"
    )
    node.done("POST", "/query/service", {"statement": statement}, user="ana")
    return {"datatype", "view", "synonym", "external_dataset"}


def test_restore_needs_the_privilege_to_create(node: DriverNode, tmp_path: Path) -> None:
    """The owner of a dropped object needs the privilege to create such an object in order to restore it."""
    grant(node, "ana", "use_catalog use_schema", kind="METALAKE", on="lake")
    role = grant(node, "ana", MAKES, kind="METALAKE", on="lake")
    make_space(node, "a")
    things = {
        "table": {"columns": [{"name": "id", "type": "long"}]},
        "function": FUNCTION,
        **{kind: {} for kind in CATALOGS},
    }
    for kind, body in things.items():
        catalog = f"{API}/lake/catalogs/{kind if kind in CATALOGS else 'main'}"
        if kind in CATALOGS:
            node.done(
                "POST", f"{API}/lake/catalogs", {"name": kind, "type": CATALOGS[kind], "provider": CATALOGS[kind]}
            )
            node.done("POST", f"{catalog}/schemas", {"name": "a"})
        node.done("POST", f"{catalog}/schemas/a/{kind}s", {"name": kind, **body}, user="ana")
        node.done("DELETE", f"{catalog}/schemas/a/{kind}s/{kind}", user="ana")
    of_sqlpp = drop_objects_of_sqlpp(node, tmp_path / "in") if has_room("sqlpp") else set()

    def brought_back() -> dict[str, int]:
        statuses = {}
        for catalog in ("main", *CATALOGS):
            trash_of = f"{OWN}/metalakes/lake/catalogs/{catalog}/trash"
            for each in node.get(trash_of).json()["trash"]:
                statuses[each["kind"]] = node.ask("POST", f"{trash_of}/{each['id']}/undrop", {}, user="ana").status
        return statuses

    kinds = things.keys() | of_sqlpp
    node.done("PUT", f"{API}/lake/permissions/users/ana/revoke", {"roleNames": [role]})
    assert brought_back() == dict.fromkeys(kinds, 403)
    node.done("PUT", f"{API}/lake/permissions/users/ana/grant", {"roleNames": [role]})
    assert brought_back() == dict.fromkeys(kinds, 200)
