# SPDX-License-Identifier: Apache-2.0
"""Names of restricted tables: drops, renames, moves and new tables lift no restriction and no denial."""

from __future__ import annotations

import pytest

from tests.http.driver import API, DriverAnswer, DriverNode, grant
from tests.http.iceberg.test_restrictions import LAKE, of, restrict
from tests.http.iceberg.wire import ROOT, drop_for_good, make_space, make_view, space_path, table_path
from tests.rooms.lance.http.wire import declare

pytestmark = pytest.mark.slow

FIELDS = [
    {"id": 1, "name": "id", "required": False, "type": "long"},
    {"id": 2, "name": "card", "required": False, "type": "string"},
]
READ = "use_catalog use_schema select_table"
TERMS = {"filter": "id > 5", "masks": {"card": "replace-with-null"}, "to": {"users": ["bob"]}}


def make(node: DriverNode, *levels: str, user: str = "admin", fields: object = FIELDS) -> None:
    """Create a table with the columns."""
    body = {"name": levels[-1], "schema": {"type": "struct", "fields": fields}}
    node.done("POST", f"{space_path(*levels[:-1])}/tables", body, user=user)


def rename(node: DriverNode, *, user: str = "admin", source: tuple[str, ...], to: tuple[str, ...]) -> DriverAnswer:
    """Rename a table."""
    ends = {"source": source, "destination": to}
    body = {key: {"namespace": list(path[:-1]), "name": path[-1]} for key, path in ends.items()}
    return node.ask("POST", f"{ROOT}/tables/rename", body, user=user)


def masked(node: DriverNode, *levels: str, user: str = "bob") -> object:
    """Return what the reader's load states: the restrictions, None for an unrestricted load, or the status."""
    answer = node.get(table_path(*levels), user=user)
    return answer.json().get("read-restrictions") if answer.status == 200 else answer.status


@pytest.fixture
def shop(lake: DriverNode) -> DriverNode:
    """A node with a restricted table a.t, its reader bob, and a builder dbt of tables who owns the namespace."""
    make_space(lake, "a")
    make_space(lake, "b")
    grant(lake, "bob", READ, kind="CATALOG", on="main")
    grant(lake, "mod", f"{READ} modify_table create_table", kind="CATALOG", on="main")
    make(lake, "a", "t")
    assert restrict(lake, **TERMS).status == 200
    return lake


def test_new_table_takes_over_the_restrictions_of_a_dropped_one(shop: DriverNode) -> None:
    """After a drop and a create, the filter and the mask apply to the new table's columns."""
    before = masked(shop, "a", "t")
    assert shop.delete(table_path("a", "t")).status == 204
    make(shop, "a", "t")

    assert before is not None
    assert masked(shop, "a", "t") == before


def test_purged_and_forgotten_tables_leave_their_restrictions(shop: DriverNode) -> None:
    """A purge, and the end of the time in the trash, lift nothing either."""
    before = masked(shop, "a", "t")
    assert shop.delete(f"{table_path('a', 't')}?purgeRequested=true").status == 204
    make(shop, "a", "t")
    again = masked(shop, "a", "t")
    drop_for_good(shop, table_path("a", "t"))
    make(shop, "a", "t")

    assert [again, masked(shop, "a", "t")] == [before, before]


def test_swap_by_renames_lifts_nothing(shop: DriverNode) -> None:
    """A table that is renamed to a restricted name takes over the restrictions, and the former table keeps its own."""
    before = masked(shop, "a", "t")
    make(shop, "a", "tmp")
    assert masked(shop, "a", "tmp") is None
    for source, target in (("t", "old"), ("tmp", "t")):
        assert rename(shop, source=("a", source), to=("a", target)).status == 204

    assert [masked(shop, "a", each) for each in ("t", "old")] == [before, before]


def test_swap_in_one_transaction_lifts_nothing(shop: DriverNode) -> None:
    """Renames that commit together lift nothing."""
    before = masked(shop, "a", "t")
    make(shop, "a", "tmp")
    moves = [
        {"do": "move-table", "source": ["a", source], "target": ["a", target]}
        for source, target in (("t", "old"), ("tmp", "t"))
    ]
    answer = shop.post(f"{LAKE}/catalogs/main/transactions", {"operations": moves})

    assert answer.status == 200, answer.body
    assert [masked(shop, "a", each) for each in ("t", "old")] == [before, before]


def test_rebuild_in_one_transaction_lifts_nothing(shop: DriverNode) -> None:
    """A drop and a create that commit together lift nothing."""
    before = masked(shop, "a", "t")
    schema = {"type": "struct", "fields": FIELDS}
    steps = [{"do": "drop-table", "path": ["a", "t"]}, {"do": "create-table", "path": ["a", "t"], "schema": schema}]
    answer = shop.post(f"{LAKE}/catalogs/main/transactions", {"operations": steps})

    assert answer.status == 200, answer.body
    assert masked(shop, "a", "t") == before


def test_restored_table_keeps_its_restrictions_once(shop: DriverNode) -> None:
    """A table that is restored from the trash has the restriction that it had, once."""
    before = masked(shop, "a", "t")
    assert shop.delete(table_path("a", "t")).status == 204
    trash = f"{LAKE}/catalogs/main/trash"
    dropped = shop.done("GET", trash)["trash"][0]["id"]
    shop.done("POST", f"{trash}/{dropped}/undrop", {})

    assert masked(shop, "a", "t") == before
    assert len(shop.done("GET", of("x").removesuffix("/x"))["restrictions"]) == 1


def test_lance_table_takes_over_denials_and_restrictions(shop: DriverNode) -> None:
    """A table of another format that gets the name is closed to restricted users: its files would not be filtered."""
    listed = f"{LAKE}/objects/TABLE/lance.a.t/restrictions"
    shop.done("POST", f"{API}/lake/catalogs/lance/schemas", {"name": "a"})
    declare(shop, "lance", "a", "t")
    grant(shop, "carl", READ, kind="CATALOG", on="lance")
    grant(shop, "carl", "select_table", kind="TABLE", on="lance.a.t", condition="deny")
    shop.post("/lance/v1/table/lance$a$t/deregister", {})
    declare(shop, "lance", "a", "t")

    assert [each["denies"] for each in shop.done("GET", listed)["restrictions"]] == [["select_table"]]
    assert shop.post("/lance/v1/table/lance$a$t/describe", {}, user="carl").status == 403


def test_rebuilt_namespace_lifts_nothing(shop: DriverNode) -> None:
    """A namespace that is dropped and created again, with its table, keeps the restrictions of both."""
    assert restrict(shop, "all", kind="SCHEMA", on="main.a", filter="id > 7", to={"users": ["bob"]}).status == 200
    before = masked(shop, "a", "t")
    assert shop.delete(table_path("a", "t")).status == 204
    assert shop.delete(space_path("a")).status == 204
    make_space(shop, "a")
    make(shop, "a", "t")

    assert masked(shop, "a", "t") == before


def test_swapped_namespaces_lift_nothing(shop: DriverNode) -> None:
    """A namespace that is renamed to a restricted table's namespace takes over the table's restrictions."""
    before = masked(shop, "a", "t")
    make(shop, "b", "t")
    for source, target in (("a", "old"), ("b", "a")):
        shop.done("POST", f"{LAKE}/catalogs/main/move", {"kind": "namespace", "source": [source], "target": [target]})

    assert [masked(shop, each, "t") for each in ("a", "old")] == [before, before]


def test_moved_table_keeps_the_restrictions_of_its_namespace(shop: DriverNode) -> None:
    """A table that leaves a restricted namespace keeps its restrictions as its own."""
    shop.done("DELETE", of("eu"))
    assert restrict(shop, "all", kind="SCHEMA", on="main.a", **TERMS).status == 200
    before = masked(shop, "a", "t")
    assert rename(shop, source=("a", "t"), to=("b", "t")).status == 204

    assert masked(shop, "b", "t") == before


def test_lacking_column_closes_a_table_that_took_over_its_mask(shop: DriverNode) -> None:
    """A rebuilt table without the masked column, or the filter's, is closed until the restriction is set again."""
    assert shop.delete(table_path("a", "t")).status == 204
    make(shop, "a", "t", fields=[FIELDS[0], {**FIELDS[1], "name": "card2"}])
    closed = masked(shop, "a", "t")
    restrict(shop, filter="id > 5", to={"users": ["bob"]})

    assert closed == 403
    assert isinstance(masked(shop, "a", "t"), dict)


def test_users_who_may_not_restrict_do_not_take_a_name_away(shop: DriverNode) -> None:
    """A rename by MODIFY_TABLE alone is 403 for a restricted table, and allowed after the restriction's removal."""
    refused = rename(shop, user="mod", source=("a", "t"), to=("a", "old"))
    shop.done("DELETE", of("eu"))

    assert refused.status == 403
    assert rename(shop, user="mod", source=("a", "t"), to=("a", "old")).status == 204


def test_refusal_to_leave_a_restriction_names_the_missing_right(shop: DriverNode) -> None:
    """The refusal names the right that is missing, also as an exempt owner; with it the move succeeds."""
    assert restrict(shop, "all", kind="SCHEMA", on="main.a", **TERMS).status == 200
    make(shop, "a", "own", user="mod")
    question = {"user": "mod", "action": "table_move", "path": ["main", "a", "own"]}
    explanation = shop.done("POST", f"{LAKE}/access/explain", question)
    refused = rename(shop, user="mod", source=("a", "own"), to=("b", "own"))
    grant(shop, "mod", "manage_grants", kind="SCHEMA", on="main.a")

    assert refused.status == 403
    assert "needs MANAGE_GRANTS on main.a, because it leaves restriction all of main.a" in refused.body.decode()
    assert explanation["suggestions"] == ["Grant MANAGE_GRANTS on namespace main.a to a role of mod."]
    assert rename(shop, user="mod", source=("a", "own"), to=("b", "own")).status == 204


@pytest.mark.parametrize("user", ["admin", "dbt"])
def test_removed_restrictions_do_not_come_back(shop: DriverNode, user: str) -> None:
    """After its removal from a rebuilt table, a restriction does not apply to the next one of the name. The namespace's
    owner may remove it.
    """
    grant(shop, "dbt", "use_catalog", kind="CATALOG", on="main")
    shop.done("PUT", f"{API}/lake/owners/SCHEMA/main.a", {"name": "dbt", "type": "USER"})
    for _ in range(2):
        assert shop.delete(table_path("a", "t")).status == 204
        make(shop, "a", "t")
    assert shop.delete(of("eu"), user=user).status == 200
    assert shop.delete(table_path("a", "t")).status == 204
    make(shop, "a", "t")

    assert masked(shop, "a", "t") is None


def test_owner_of_a_new_table_does_not_end_what_its_name_remembers(shop: DriverNode) -> None:
    """A user who may create tables removes a restriction from their own table, but the next one takes it over."""
    before = masked(shop, "a", "t")
    assert shop.delete(table_path("a", "t")).status == 204
    make(shop, "a", "t", user="mod")
    assert shop.delete(of("eu"), user="mod").status == 200
    removed = masked(shop, "a", "t")
    assert shop.delete(table_path("a", "t"), user="mod").status == 204
    make(shop, "a", "t")

    assert removed is None
    assert masked(shop, "a", "t") == before


def test_restrictions_of_a_view_are_removed_with_the_right_to_grant_on_it(shop: DriverNode) -> None:
    """Who manages grants, but may not use the namespace of a view, removes no restriction from the view."""
    make_view(shop, "a", "v")
    path = of("eu", kind="VIEW", on="main.a.v")
    grant(shop, "kim", "manage_grants", kind="METALAKE", on="lake")
    refused = shop.delete(path, user="kim")
    grant(shop, "kim", "use_catalog use_schema", kind="CATALOG", on="main")

    assert refused.status == 403
    assert shop.delete(path, user="kim").status == 200


def test_rebuilds_add_no_second_restriction(shop: DriverNode) -> None:
    """A table that was rebuilt and swapped several times has one restriction."""
    for number in range(3):
        make(shop, "a", "tmp")
        rename(shop, source=("a", "t"), to=("a", f"old{number}"))
        rename(shop, source=("a", "tmp"), to=("a", "t"))

    listed = shop.done("GET", of("x").removesuffix("/x"))["restrictions"]
    assert [each["name"] for each in listed] == ["eu"]


@pytest.mark.parametrize("swaps", [False, True])
def test_denials_are_taken_over_and_grants_are_not(shop: DriverNode, swaps: bool) -> None:
    """The denial of a role on a former table applies to the new one of its name; a grant on it does not."""
    make(shop, "a", "s")
    grant(shop, "carl", READ, kind="CATALOG", on="main")
    grant(shop, "carl", "select_table", kind="TABLE", on="main.a.s", condition="deny")
    grant(shop, "dan", "use_catalog", kind="CATALOG", on="main")
    grant(shop, "dan", "use_schema", kind="SCHEMA", on="main.a")
    grant(shop, "dan", "select_table", kind="TABLE", on="main.a.s")
    assert [masked(shop, "a", "s", user=each) for each in ("carl", "dan")] == [403, None]
    if swaps:
        make(shop, "a", "tmp")
        rename(shop, source=("a", "s"), to=("a", "old"))
        rename(shop, source=("a", "tmp"), to=("a", "s"))
    else:
        assert shop.delete(table_path("a", "s")).status == 204
        make(shop, "a", "s")

    assert [masked(shop, "a", "s", user=each) for each in ("carl", "dan")] == [403, 403]
    assert masked(shop, "a", "s", user="bob") is None


def test_view_does_not_take_the_name_of_a_restricted_table(shop: DriverNode) -> None:
    """Restrictions do not apply to views, so a view of the name is refused."""
    assert shop.delete(table_path("a", "t")).status == 204
    with pytest.raises(AssertionError, match="409"):
        make_view(shop, "a", "t")


def test_registered_table_takes_over_restrictions(shop: DriverNode) -> None:
    """A table that is unregistered and registered again keeps its restrictions."""
    before = masked(shop, "a", "t")
    location = shop.get(table_path("a", "t")).json()["metadata-location"]
    drop_for_good(shop, table_path("a", "t"))
    shop.done("POST", f"{space_path('a')}/register", {"name": "t", "metadata-location": location})

    assert masked(shop, "a", "t") == before


def test_groups_of_remembered_restrictions_are_not_dropped(shop: DriverNode) -> None:
    """A group that only the restriction of a dropped table names is not dropped: a new table would take it over."""
    shop.done("POST", f"{API}/lake/groups", {"name": "staff"})
    restrict(shop, "staff", filter="id > 5", to={"groups": ["staff"]})
    drop_for_good(shop, table_path("a", "t"))

    assert shop.delete(f"{API}/lake/groups/staff").status == 409


def test_reports_of_access_count_denials_that_a_table_took_over(shop: DriverNode) -> None:
    """A user whom the denial of a former table binds is no holder of the new one, and does not reach it."""
    access = f"{LAKE}/access"
    make(shop, "a", "s")
    grant(shop, "carl", READ, kind="CATALOG", on="main")
    role = grant(shop, "carl", "select_table", kind="TABLE", on="main.a.s", condition="deny")

    def report() -> tuple[object, ...]:
        holders = shop.done("GET", f"{access}/holders?path=main.a.s&action=table_scan")["holders"]
        reach = shop.done("GET", f"{access}/reach?path=&kind=metalake&user=carl")
        rules = shop.done("GET", f"{access}/rules?path=main.a.s")["rules"]
        denials = [(each["role"], each["privilege"]) for each in rules if each["condition"] == "deny"]
        return [each["user"] for each in holders], reach["counts"], denials

    before = report()
    assert shop.delete(table_path("a", "s")).status == 204
    make(shop, "a", "s")

    assert "carl" not in before[0]
    assert before[2] == [(role, "SELECT_TABLE")]
    assert report() == before


def test_trash_names_restrictions_for_users_who_may_restore(shop: DriverNode) -> None:
    """The trash states restrictions and denials that stay with a path, to the users who see the entry."""
    role = grant(shop, "carl", "select_table", kind="TABLE", on="main.a.t", condition="deny")
    make(shop, "a", "s", user="mod")
    assert shop.delete(table_path("a", "t")).status == 204
    assert shop.delete(table_path("a", "s"), user="mod").status == 204
    trash = f"{LAKE}/catalogs/main/trash"

    entries = {user: shop.done("GET", trash, user=user)["trash"] for user in ("admin", "mod")}

    stated = {user: {each["path"][-1]: each["restrictions"] for each in rows} for user, rows in entries.items()}
    assert stated == {"admin": {"s": [], "t": [f"denials of {role}", "eu"]}, "mod": {"s": []}}
