# SPDX-License-Identifier: Apache-2.0
"""Search by name, prefix, path, id, UUID, tag and owner: current, in order, and limited to objects that the caller may
load.
"""

from __future__ import annotations

from urllib.parse import quote

import pytest

from limnos.rooms.search.services import narrow_scopes, searches
from limnos.rooms.search.services.indexing import index_step
from tests.http.driver import API, OWN, DriverNode, grant
from tests.http.iceberg.wire import (
    commit,
    make_space,
    make_table,
    make_view,
    metadata_of,
    set_properties,
    space_path,
    table_path,
)

SEARCH = f"{OWN}/metalakes/lake/search"
CANARY = "hiddencanary"


def ask(node: DriverNode, question: str, *, user: str = "admin", more: str = "") -> dict:
    """Send a query. Returns the answer."""
    answer = node.get(f"{SEARCH}?q={quote(question)}{more}", user=user)
    assert answer.status == 200, answer.body
    return answer.json()


def list_hit_paths(node: DriverNode, question: str, *, user: str = "admin", more: str = "") -> list[str]:
    """Return the paths of the hits."""
    return [".".join(hit["path"]) for hit in ask(node, question, user=user, more=more)["hits"]]


def move(node: DriverNode, kind: str, source: list[str], target: list[str]) -> None:
    """Move an object."""
    body = {"kind": kind, "source": source, "target": target}
    node.done("POST", f"{OWN}/metalakes/lake/catalogs/main/move", body)


def test_exact_names_rank_first_then_shorter_prefix_matches(node: DriverNode) -> None:
    """Exact names in any letter case come first, then names that begin with the word, shorter names first."""
    for name in ("flights_by_day", "FLIGHTS", "flights2", "other"):
        make_table(node, "a", name)
    make_space(node, "flights")
    make_view(node, "b", "Flights_v")

    assert list_hit_paths(node, "flights") == [
        "main.a.FLIGHTS",
        "main.flights",
        "main.a.flights2",
        "main.b.Flights_v",
        "main.a.flights_by_day",
    ]
    assert [hit["tier"] for hit in ask(node, "Flights")["hits"]] == [1, 1, 2, 2, 2]
    assert list_hit_paths(node, "flights kind:view") == ["main.b.Flights_v"]
    assert list_hit_paths(node, "flights", more="&kind=namespace") == ["main.flights"]


def test_path_id_and_uuid_match_one_object(node: DriverNode) -> None:
    """A whole path, the end of a path, an id and a table's UUID each find one object."""
    make_table(node, "a", "b", "t")
    make_table(node, "c", "t")
    (hit,) = ask(node, "main.a.b.t")["hits"]
    uuid = str(metadata_of(node, "a", "b", "t")["table-uuid"])

    assert (hit["path"], hit["tier"], hit["matched"][0]["where"]) == (["main", "a", "b", "t"], 0, "path")
    assert (
        list_hit_paths(node, "B.T")
        == list_hit_paths(node, str(hit["id"]))
        == list_hit_paths(node, uuid)
        == ["main.a.b.t"]
    )
    assert list_hit_paths(node, "t") == ["main.c.t", "main.a.b.t"]
    assert list_hit_paths(node, "t in:main.a") == ["main.a.b.t"]
    assert list_hit_paths(node, "t in:nowhere") == []
    assert (hit["format"], hit["kind"]) == ("iceberg", "table")


def test_search_reflects_renames_drops_and_restores_at_once(node: DriverNode) -> None:
    """After a rename, drop or restore, the next search finds the new name and path, and no longer the old ones."""
    make_table(node, "a", "old")
    move(node, "table", ["a", "old"], ["a", "new"])
    assert (list_hit_paths(node, "old"), list_hit_paths(node, "new")) == ([], ["main.a.new"])
    move(node, "namespace", ["a"], ["z"])
    assert list_hit_paths(node, "new") == ["main.z.new"]
    node.delete(table_path("z", "new"))
    assert list_hit_paths(node, "new") == []
    trash = f"{OWN}/metalakes/lake/catalogs/main/trash"
    number = node.get(trash).json()["trash"][0]["id"]
    node.done("POST", f"{trash}/{number}/undrop", {"to": ["z", "Back"]})
    assert list_hit_paths(node, "back") == ["main.z.Back"]


def index(node: DriverNode) -> None:
    """Index all committed changes."""
    while node.runner.run(index_step(node.built.services)):
        pass


def test_restored_object_is_found_by_its_words(node: DriverNode) -> None:
    """The words of an object leave the index with its drop, and are in it again after its restore and a rename."""
    make_table(node, "a", "t")
    assert commit(node, "a", "t", updates=[set_properties(comment="quarterly ledger")]).status == 200
    trash = f"{OWN}/metalakes/lake/catalogs/main/trash"
    index(node)
    paths = [list_hit_paths(node, "ledger")]
    assert node.delete(table_path("a", "t")).status == 204
    index(node)
    paths.append(list_hit_paths(node, "ledger"))
    (dropped,) = node.done("GET", trash)["trash"]
    node.done("POST", f"{trash}/{dropped['id']}/undrop", {})
    index(node)
    paths.append(list_hit_paths(node, "ledger"))
    assert commit(node, "a", "t", updates=[set_properties(comment="monthly")]).status == 200
    index(node)
    paths.append(list_hit_paths(node, "ledger"))

    assert paths == [["main.a.t"], [], ["main.a.t"], []]


def test_search_below_a_namespace_does_not_find_the_namespace(node: DriverNode) -> None:
    """A search below a namespace finds what is in it, and neither the namespace nor one with a longer name."""
    for space in ("raw", "raws"):
        make_table(node, space, "raw_t")
    node.done("POST", "/iceberg/v1/lake.main/namespaces", {"namespace": ["raw", "raw"]})

    assert sorted(list_hit_paths(node, "raw in:main.raw")) == ["main.raw.raw", "main.raw.raw_t"]
    assert list_hit_paths(node, "kind:namespace in:main.raw") == ["main.raw.raw"]
    assert sorted(list_hit_paths(node, "kind:namespace in:main")) == ["main.raw", "main.raw.raw", "main.raws"]
    assert list_hit_paths(node, "kind:catalog in:main") == []


def test_filters_by_tag_and_owner_narrow_the_result(node: DriverNode) -> None:
    """Filters find objects by tag, tag on a column, tag value and owner; words narrow the result."""
    for name in ("t1", "t2", "u"):
        make_table(node, "a", name)
    node.done("POST", f"{API}/lake/tags", {"name": "pii"})
    node.done("POST", f"{API}/lake/objects/table/main.a.t1/tags", {"tagsToAdd": ["pii"]})
    node.done("POST", f"{API}/lake/objects/column/main.a.u.city/tags", {"tagsToAdd": ["pii"]})
    node.done("POST", f"{API}/lake/users", {"name": "ana"})
    node.done("PUT", f"{API}/lake/owners/table/main.a.t2", {"name": "ana", "type": "USER"})

    assert list_hit_paths(node, "tag:pii") == ["main.a.u", "main.a.t1"]
    assert list_hit_paths(node, "tag:pii t") == ["main.a.t1"]
    assert list_hit_paths(node, "owner:ana") == ["main.a.t2"]
    assert (
        list_hit_paths(node, "owner:ana tag:pii")
        == list_hit_paths(node, "tag:gone")
        == list_hit_paths(node, "owner:gone")
        == []
    )
    assert list_hit_paths(node, "kind:tag") == ["pii"]


def test_search_returns_only_objects_the_caller_may_load(node: DriverNode) -> None:
    """A user with rights on one table finds only that table, and no answer has a hidden object's name. Users who are
    not in the metalake are refused.
    """
    for name in ("seen", f"seen_{CANARY}"):
        make_table(node, "a", name)
    make_table(node, CANARY, "seen")
    node.done("POST", f"{API}/lake/tags", {"name": CANARY})
    node.done("POST", f"{API}/lake/objects/table/main.a.seen/tags", {"tagsToAdd": [CANARY]})
    grant(node, "ana", "USE_CATALOG", kind="CATALOG", on="main")
    grant(node, "ana", "USE_SCHEMA", kind="SCHEMA", on="main.a")
    grant(node, "ana", "SELECT_TABLE", kind="TABLE", on="main.a.seen")
    node.done("POST", f"{API}/lake/users", {"name": "bob"})

    assert list_hit_paths(node, "seen", user="ana") == ["main.a.seen"]
    for question in ("seen", CANARY, f"main.{CANARY}.seen", f"tag:{CANARY}", "kind:table", "owner:admin", "kind:tag"):
        assert CANARY not in str(ask(node, question, user="ana")["hits"]), question
    assert list_hit_paths(node, f"tag:{CANARY}") == ["main.a.seen"]
    assert list_hit_paths(node, f"tag:{CANARY}", user="ana") == [], (
        "who has a tag is told to those who may load the tag"
    )
    assert list_hit_paths(node, "seen", user="bob") == []
    assert node.get(f"{SEARCH}?q=seen", user="stranger").status == 403
    assert node.get(f"{SEARCH}?q=seen", user=None).status == 403


def test_a_revoke_holds_for_the_next_search(node: DriverNode) -> None:
    """Objects that a revoke hides are not found by the next search."""
    make_table(node, "a", "t")
    role = grant(node, "ana", "USE_CATALOG USE_SCHEMA SELECT_TABLE", kind="CATALOG", on="main")
    before = list_hit_paths(node, "t", user="ana")
    node.done("PUT", f"{API}/lake/permissions/users/ana/revoke", {"roleNames": [role]})

    assert (before, list_hit_paths(node, "t", user="ana")) == (["main.a.t"], [])


def test_limited_result_reports_more_and_bounded(node: DriverNode, monkeypatch: pytest.MonkeyPatch) -> None:
    """The limit bounds the number of hits, and `more` is true if there are further hits. `bounded` is true if more
    candidates exist than the search examined.
    """
    for number in range(6):
        make_table(node, "a", f"t{number}")
    some = ask(node, "t kind:table", more="&limit=4")
    all_of_them = ask(node, "kind:table")
    first, exactly = (ask(node, "kind:table", more=f"&limit={limit}") for limit in (4, 6))
    monkeypatch.setattr(searches, "LOOKED_MAX", 3)
    bounded = ask(node, "kind:table")

    assert (len(some["hits"]), some["more"], some["bounded"]) == (0, False, False)  # one letter is no start
    assert (len(all_of_them["hits"]), all_of_them["more"]) == (6, False)
    assert [(len(each["hits"]), each["more"], each["bounded"]) for each in (first, exactly)] == [
        (4, True, False),
        (6, False, False),
    ]
    assert (len(bounded["hits"]), bounded["bounded"]) == (3, True)
    assert len(ask(node, "kind:table", more="&limit=2")["hits"]) == 2


def test_objects_of_disabled_and_dropped_catalogs_are_hidden(node: DriverNode) -> None:
    """Objects of a disabled catalog are not found until it is enabled again. Objects of another metalake are never
    found.
    """
    make_table(node, "a", "t1")
    node.done("PATCH", f"{API}/lake/catalogs/main", {"inUse": False})
    hidden = list_hit_paths(node, "t1")
    node.done("PATCH", f"{API}/lake/catalogs/main", {"inUse": True})
    node.done("POST", f"{API}", {"name": "other"})

    assert (hidden, list_hit_paths(node, "t1")) == ([], ["main.a.t1"])
    assert node.get(f"{OWN}/metalakes/other/search?q=t1").json()["hits"] == []
    assert node.get(f"{OWN}/metalakes/gone/search?q=t1").status == 403


@pytest.mark.parametrize("query", ["", "q=", "q=x&limit=0", "q=x&limit=201", "q=x&kind=thing", "q=in:a..b+x"])
def test_invalid_query_is_400(node: DriverNode, query: str) -> None:
    """Empty queries and invalid limits and kinds are 400."""
    assert node.get(f"{SEARCH}?{query}").status == 400


def test_all_objects_match_with_access_control_off(open_node: DriverNode) -> None:
    """With access control off, a search finds all objects."""
    make_table(open_node, "a", "Zürich")
    commit(open_node, "a", "Zürich", updates=[set_properties(comment="x")])

    assert list_hit_paths(open_node, "ZÜRICH", user="anyone") == ["main.a.Zürich"]
    assert open_node.ask("HEAD", space_path("a")).status == 204


def test_search_with_few_privileges_starts_at_their_objects(node: DriverNode, monkeypatch: pytest.MonkeyPatch) -> None:
    """With few privileges, the search begins at the objects of these privileges and finds one behind many hidden ones.
    With many privileges, it examines the first candidates only.
    """
    for name in ("t0", "t1", "t2", "t3"):
        make_table(node, "a", name)
    make_table(node, "b", "t9")
    grant(node, "ana", "USE_CATALOG", kind="CATALOG", on="main")
    grant(node, "ana", "USE_SCHEMA SELECT_TABLE", kind="SCHEMA", on="main.b")
    while node.runner.run(index_step(node.built.services)):
        pass
    monkeypatch.setattr(searches, "LOOKED_MAX", 3)
    answers = [ask(node, question, user="ana") for question in ("kind:table", "t9", "city kind:table", "b t9")]
    monkeypatch.setattr(narrow_scopes, "SCOPE_MAX", 0)
    wide = ask(node, "kind:table", user="ana")

    assert [[hit["path"] for hit in each["hits"]] for each in answers] == [[["main", "b", "t9"]]] * 4
    assert not any(each["bounded"] for each in answers)
    assert (wide["bounded"], len(wide["hits"])) == (True, 0)
