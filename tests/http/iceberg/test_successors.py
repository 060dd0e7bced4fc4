# SPDX-License-Identifier: Apache-2.0
"""Successors: what a rebuilt table takes over from the former one of its path, in a catalog with that setting."""

from __future__ import annotations

import pytest

from tests.http.driver import API, DriverNode, grant
from tests.http.iceberg.test_restricted_names import READ, make, masked, rename
from tests.http.iceberg.test_restrictions import LAKE, restrict
from tests.http.iceberg.wire import make_space, make_view, space_path, table_path, view_path
from tests.http.test_request_audit import read_audit_records
from tests.rooms.gravitino.http.test_tags import associate, pair, tag_rows
from tests.rooms.lance.http.wire import declare
from tests.rooms.pipelines.http.test_lineage import dataset, edges, event, link, store_events

CATALOG = f"{API}/lake/catalogs/main"


def let_follow(node: DriverNode, word: str = "same-owner", *, user: str = "admin") -> int:
    """Set the catalog's property, and return the status."""
    change = {"@type": "setProperty", "property": "successors", "value": word}
    return node.put(CATALOG, {"updates": [change]}, user=user).status


@pytest.fixture
def shop(lake: DriverNode) -> DriverNode:
    """A node whose catalog has successors, with a table a.t of the builder mod, and its reader dan."""
    make_space(lake, "a")
    make_space(lake, "b")
    grant(lake, "mod", f"{READ} modify_table create_table", kind="CATALOG", on="main")
    grant(lake, "eve", f"{READ} modify_table create_table", kind="CATALOG", on="main")
    for user in ("dan", "eva"):
        grant(lake, user, "use_catalog", kind="CATALOG", on="main")
        grant(lake, user, "use_schema", kind="SCHEMA", on="main.a")
    assert let_follow(lake) == 200
    make(lake, "a", "t", user="mod")
    grant(lake, "dan", "select_table", kind="TABLE", on="main.a.t")
    return lake


def rebuild(node: DriverNode, *, user: str = "mod") -> None:
    """Drop a.t and create it again, as tools that build tables do."""
    assert node.delete(table_path("a", "t"), user=user).status == 204
    make(node, "a", "t", user=user)


def test_grants_follow_a_table_that_its_owner_rebuilds(shop: DriverNode) -> None:
    """A user who could read the former table can read the new one, and nobody else can."""
    rebuild(shop)

    assert [masked(shop, "a", "t", user=each) for each in ("dan", "eva")] == [None, 403]
    rebuild(shop)
    assert [masked(shop, "a", "t", user=each) for each in ("dan", "eva")] == [None, 403]


def swap(node: DriverNode, *, user: str = "mod") -> None:
    """Build a table beside a.t and swap the two by renames."""
    make(node, "a", "tmp", user=user)
    for source, target in (("t", "old"), ("tmp", "t")):
        assert rename(node, source=("a", source), to=("a", target), user=user).status == 204


def test_grants_follow_a_swap_by_renames(shop: DriverNode) -> None:
    """Readers of a name read the table that its owner renamed to it, and still the one that left."""
    swap(shop)

    assert [masked(shop, "a", each, user="dan") for each in ("t", "old")] == [None, None]


def test_swap_in_one_transaction_takes_over_grants(shop: DriverNode) -> None:
    """Moves that commit together do the same."""
    make(shop, "a", "tmp", user="mod")
    moves = [
        {"do": "move-table", "source": ["a", source], "target": ["a", target]}
        for source, target in (("t", "old"), ("tmp", "t"))
    ]
    answer = shop.post(f"{LAKE}/catalogs/main/transactions", {"operations": moves}, user="mod")

    assert answer.status == 200, answer.body
    assert masked(shop, "a", "t", user="dan") is None


def test_catalog_without_the_property_has_no_successors(shop: DriverNode) -> None:
    """Without the property, and for objects that left while it was off, a grant stays with the former table."""
    assert let_follow(shop, "none") == 200
    assert shop.delete(table_path("a", "t"), user="mod").status == 204
    assert let_follow(shop) == 200
    make(shop, "a", "t", user="mod")

    assert masked(shop, "a", "t", user="dan") == 403


def test_turning_the_property_off_forgets_former_objects(shop: DriverNode) -> None:
    """What paths remembered before the property was off does not come back with it."""
    assert shop.delete(table_path("a", "t"), user="mod").status == 204
    assert [let_follow(shop, "none"), let_follow(shop)] == [200, 200]
    make(shop, "a", "t", user="mod")

    assert masked(shop, "a", "t", user="dan") == 403


@pytest.mark.parametrize("maker", ["eve", "admin"])
def test_table_of_another_owner_has_no_grants_of_the_former(shop: DriverNode, maker: str) -> None:
    """A table of another user takes over nothing, and nothing of it later: the next one is a stranger's successor."""
    assert shop.delete(table_path("a", "t"), user="mod").status == 204
    make(shop, "a", "t", user=maker)
    other = masked(shop, "a", "t", user="dan")
    assert shop.delete(table_path("a", "t"), user=maker).status == 204
    make(shop, "a", "t", user="mod")

    assert [other, masked(shop, "a", "t", user="dan")] == [403, 403]


def test_rename_by_another_user_opens_nothing(shop: DriverNode) -> None:
    """Who may modify two tables of one owner does not give the readers of one the content of the other."""
    make(shop, "a", "secret", user="mod")
    for source, target in (("t", "old"), ("secret", "t")):
        assert rename(shop, source=("a", source), to=("a", target), user="eve").status == 204

    assert masked(shop, "a", "t", user="dan") == 403


def test_revoked_grants_do_not_follow(shop: DriverNode) -> None:
    """Grants that end while the table is in the trash end: by the role's drop, and by taking the role from a user."""
    second = grant(shop, "eva", "select_table", kind="TABLE", on="main.a.t")
    first = shop.done("GET", f"{API}/lake/users/dan")["user"]["roles"][-1]
    assert shop.delete(table_path("a", "t"), user="mod").status == 204
    assert shop.delete(f"{API}/lake/roles/{first}").status == 200
    shop.done("PUT", f"{API}/lake/permissions/users/eva/revoke", {"roleNames": [second]})
    make(shop, "a", "t", user="mod")

    assert [masked(shop, "a", "t", user=each) for each in ("dan", "eva")] == [403, 403]


def test_user_who_was_removed_and_added_again_gets_nothing(shop: DriverNode) -> None:
    """A grant belonged to the user who was removed, not to the name."""
    assert shop.delete(table_path("a", "t"), user="mod").status == 204
    assert shop.delete(f"{API}/lake/users/dan").status == 200
    make(shop, "a", "t", user="mod")
    grant(shop, "dan", "use_catalog", kind="CATALOG", on="main")
    grant(shop, "dan", "use_schema", kind="SCHEMA", on="main.a")

    assert masked(shop, "a", "t", user="dan") == 403


def test_grants_after_the_former_table_left_do_not_follow(shop: DriverNode) -> None:
    """A reader who got a grant on the table under its next name does not read the new one."""
    make(shop, "a", "tmp", user="mod")
    assert rename(shop, source=("a", "t"), to=("a", "old"), user="mod").status == 204
    grant(shop, "eva", "select_table", kind="TABLE", on="main.a.old")
    assert rename(shop, source=("a", "tmp"), to=("a", "t"), user="mod").status == 204

    assert [masked(shop, "a", "t", user=each) for each in ("dan", "eva")] == [None, 403]


def test_grant_that_was_revoked_on_the_successor_stays_revoked(shop: DriverNode) -> None:
    """The last table of a path counts: what was revoked from it does not come back from an earlier one."""
    rebuild(shop)
    for role in shop.done("GET", f"{API}/lake/objects/TABLE/main.a.t/roles")["names"]:
        body = {"privileges": [{"name": "select_table", "condition": "allow"}]}
        shop.done("PUT", f"{API}/lake/permissions/roles/{role}/TABLE/main.a.t/revoke", body)
    refused = masked(shop, "a", "t", user="dan")
    move = {"kind": "namespace", "source": ["a"], "target": ["c"]}
    shop.done("POST", f"{LAKE}/catalogs/main/move", move)
    make_space(shop, "a")
    grant(shop, "dan", "use_schema", kind="SCHEMA", on="main.a")
    make(shop, "a", "t", user="mod")

    assert [refused, masked(shop, "a", "t", user="dan")] == [403, 403]


def test_changed_owner_is_another_owner(shop: DriverNode) -> None:
    """The former owner of a table that was given to somebody else is not its owner."""
    shop.done("PUT", f"{API}/lake/owners/TABLE/main.a.t", {"name": "eve", "type": "USER"})
    assert shop.delete(table_path("a", "t"), user="eve").status == 204
    make(shop, "a", "t", user="mod")

    assert masked(shop, "a", "t", user="dan") == 403


def test_group_rebuilds_its_tables(shop: DriverNode) -> None:
    """Each member of the group that owned a table rebuilds it for the group; others do not."""
    shop.done("POST", f"{API}/lake/groups", {"name": "builders"})
    members = f"{LAKE}/groups/builders/members"
    shop.done("POST", members, {"users": ["mod", "eve"]})
    shop.done("PUT", f"{API}/lake/owners/TABLE/main.a.t", {"name": "builders", "type": "GROUP"})
    readers = []
    for user in ("mod", "eve"):
        rebuild(shop, user=user)
        readers.append(masked(shop, "a", "t", user="dan"))

    assert readers == [None, None]
    assert shop.done("GET", f"{API}/lake/owners/TABLE/main.a.t")["owner"]["name"] == "builders"


def test_view_does_not_take_over_grants_of_a_table(shop: DriverNode) -> None:
    """A grant on a table is no grant on a view of its name."""
    grant(shop, "mod", "create_view", kind="CATALOG", on="main")
    assert shop.delete(table_path("a", "t"), user="mod").status == 204
    make_view(shop, "a", "t", user="mod")

    assert shop.get(view_path("a", "t"), user="dan").status == 403


def test_restored_table_has_its_own_grants_only(shop: DriverNode) -> None:
    """A table that comes back from the trash takes over nothing from a later one of its name."""
    assert shop.delete(table_path("a", "t"), user="mod").status == 204
    make(shop, "a", "t", user="mod")
    grant(shop, "eva", "select_table", kind="TABLE", on="main.a.t")
    trash = f"{LAKE}/catalogs/main/trash"
    first = shop.done("GET", trash)["trash"][0]["id"]
    assert shop.delete(table_path("a", "t"), user="mod").status == 204
    shop.done("POST", f"{trash}/{first}/undrop", {}, user="mod")

    assert [masked(shop, "a", "t", user=each) for each in ("dan", "eva")] == [None, 403]


def test_table_removed_from_the_trash_has_no_successor(shop: DriverNode) -> None:
    """Who removes a table from the trash ends what its path remembers."""
    assert shop.delete(table_path("a", "t"), user="mod").status == 204
    trash = f"{LAKE}/catalogs/main/trash"
    assert shop.delete(f"{trash}/{shop.done('GET', trash)['trash'][0]['id']}").status == 200
    make(shop, "a", "t", user="mod")

    assert masked(shop, "a", "t", user="dan") == 403


def test_restrictions_and_denials_follow_as_without_the_property(shop: DriverNode) -> None:
    """A reader whose grants follow is restricted and denied as before."""
    assert restrict(shop, filter="id > 5", to={"users": ["dan"]}).status == 200
    before = masked(shop, "a", "t", user="dan")
    grant(shop, "eva", "select_table", kind="TABLE", on="main.a.t")
    grant(shop, "eva", "select_table", kind="TABLE", on="main.a.t", condition="deny")
    assert shop.delete(table_path("a", "t")).status == 204
    make(shop, "a", "t", user="mod")

    assert before is not None
    assert [masked(shop, "a", "t", user=each) for each in ("dan", "eva")] == [before, 403]


def test_namespace_takes_over_its_grants(shop: DriverNode) -> None:
    """A namespace that its owner drops and creates again keeps the grants on it."""
    grant(shop, "mod", "create_schema", kind="CATALOG", on="main")
    make_space(shop, "mine", user="mod")
    grant(shop, "dan", "use_schema select_table", kind="SCHEMA", on="main.mine")
    assert shop.delete(space_path("mine"), user="mod").status == 204
    make_space(shop, "mine", user="mod")
    make(shop, "mine", "x", user="mod")

    assert masked(shop, "mine", "x", user="dan") is None


def test_tags_follow_with_their_values(shop: DriverNode) -> None:
    """Tags of the former table are on the new one, with their values."""
    shop.done("POST", f"{API}/lake/tags", {"name": "domain", "allowedValues": ["sales", "risk"]})
    target = f"{API}/lake/objects/TABLE/main.a.t/tags"
    assert associate(shop, target, pair("domain", "risk")).status == 200
    before = tag_rows(shop, target)
    rebuild(shop)

    assert before == [("domain", False, ["risk"])]
    assert tag_rows(shop, target) == before


def test_lineage_follows_in_both_directions(shop: DriverNode) -> None:
    """Edges into and out of the former table, also those of columns, are edges of the new one."""
    make(shop, "a", "s")
    make(shop, "a", "u")
    columns = {"id": [link("main.a.s", "id")]}
    store_events(shop, event(dataset("main.a.t"), dataset("main.a.s"), columns=columns))
    columns = {"id": [link("main.a.t", "id")]}
    store_events(shop, event(dataset("main.a.u"), dataset("main.a.t"), job="other", columns=columns))
    queries = ["path=main.a.t", "path=main.a.t&direction=down", "path=main.a.u&column=id&depth=2"]
    before = [edges(shop, each) for each in queries]
    rebuild(shop)

    assert before[0] == [("main.a.s", "main.a.t")]
    assert before[2] == [("main.a.s/id", "main.a.t/id"), ("main.a.t/id", "main.a.u/id")]
    assert [edges(shop, each) for each in queries] == before


def test_audit_records_name_the_grants_of_a_successor(shop: DriverNode) -> None:
    """The record of the create says what the table takes over, and each role has a record of its grants."""
    (role,) = shop.done("GET", f"{API}/lake/objects/TABLE/main.a.t/roles")["names"]
    rebuild(shop)
    lines = [each for some in read_audit_records(shop).values() for each in some]
    details = {(each.change, each.kind): each.detail for each in lines if "former" in each.detail}
    changes = shop.done("GET", f"{LAKE}/changes")["changes"]

    assert details == {
        ("create", "table"): f"takes over from the former table of this path: grants of {role}",
        ("alter", "role"): "allow SELECT_TABLE on table main.a.t, as on the former object of this path",
    }
    assert [each["operation"] for each in changes if each["kind"] == "role"][-1:] == ["alter"]


@pytest.mark.parametrize("user", ["mod", "eve"])
def test_only_owners_of_the_catalog_set_the_property(shop: DriverNode, user: str) -> None:
    """Users who may create tables neither set nor remove the property, but see it."""
    catalog = shop.get(CATALOG, user=user).json()["catalog"]

    assert let_follow(shop, "none", user=user) == 403
    assert catalog["properties"]["successors"] == "same-owner"


def test_unknown_words_are_refused(shop: DriverNode) -> None:
    """The property is `none` or `same-owner`."""
    assert let_follow(shop, "everybody") == 400


def test_lance_table_has_the_grants_of_the_former(shop: DriverNode) -> None:
    """A Lance table that its owner declares again takes over the grants of the former one."""
    properties = {"updates": [{"@type": "setProperty", "property": "successors", "value": "same-owner"}]}
    shop.done("PUT", f"{API}/lake/catalogs/lance", properties)
    shop.done("POST", f"{API}/lake/catalogs/lance/schemas", {"name": "a"})
    declare(shop, "lance", "a", "t")
    grant(shop, "dan", "use_catalog", kind="CATALOG", on="lance")
    grant(shop, "dan", "use_schema", kind="SCHEMA", on="lance.a")
    grant(shop, "dan", "select_table", kind="TABLE", on="lance.a.t")
    statuses = [shop.post("/lance/v1/table/lance$a$t/describe", {}, user=each).status for each in ("dan", "eva")]
    shop.post("/lance/v1/table/lance$a$t/deregister", {})
    declare(shop, "lance", "a", "t")

    assert statuses == [200, 403]
    assert [
        shop.post("/lance/v1/table/lance$a$t/describe", {}, user=each).status for each in ("dan", "eva")
    ] == statuses


def test_table_rebuilt_over_gravitino_keeps_grants(shop: DriverNode) -> None:
    """A table that its owner drops and creates over Gravitino REST takes over grants, too."""
    tables = f"{CATALOG}/schemas/a/tables"
    columns = [{"name": "id", "type": "long", "nullable": True}]
    shop.done("DELETE", f"{tables}/t", user="mod")
    shop.done("POST", tables, {"name": "t", "columns": columns}, user="mod")

    assert masked(shop, "a", "t", user="dan") is None


def test_undrop_of_the_former_table_leaves_the_successor_as_it_is(shop: DriverNode) -> None:
    """A former table that is restored beside its successor has its own grants, and a revoke from one binds it alone."""
    rebuild(shop)
    trash = f"{LAKE}/catalogs/main/trash"
    first = shop.done("GET", trash)["trash"][0]["id"]
    shop.done("POST", f"{trash}/{first}/undrop", {"to": ["a", "old"]}, user="mod")
    (role,) = shop.done("GET", f"{API}/lake/objects/TABLE/main.a.t/roles")["names"]
    body = {"privileges": [{"name": "select_table", "condition": "allow"}]}
    shop.done("PUT", f"{API}/lake/permissions/roles/{role}/TABLE/main.a.t/revoke", body)

    assert [masked(shop, "a", each, user="dan") for each in ("t", "old")] == [403, None]
