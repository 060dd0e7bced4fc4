"""Chains of views with definer's rights: the rights that readers get, and attempts to get more."""

from __future__ import annotations

import pytest

from tests.http.driver import API, DriverAnswer, DriverNode, grant
from tests.http.iceberg.wire import (
    ROOT,
    error_of,
    make_space,
    make_table,
    make_view,
    replaced_by,
    set_properties,
    space_path,
    table_path,
    view_body,
    view_path,
    view_version,
)

READS = view_version("select * from hidden.t")
"""A view text that reads the table."""


@pytest.fixture
def world(lake: DriverNode) -> DriverNode:
    """`ana` reads views of `open`; `bob` may create views there and read the table in `hidden`; `eve` may only create
    views.
    """
    make_table(lake, "hidden", "t")
    make_table(lake, "hidden", "other")
    make_space(lake, "open")
    for user in ("ana", "bob", "eve"):
        lake.done("POST", f"{API}/lake/users", {"name": user})
        grant(lake, user, "use_catalog", kind="CATALOG", on="main")
    grant(lake, "ana", "use_schema select_view", kind="SCHEMA", on="main.open")
    grant(lake, "bob", "use_schema create_view", kind="SCHEMA", on="main.open")
    grant(lake, "eve", "use_schema create_view select_view", kind="SCHEMA", on="main.open")
    grant(lake, "bob", "use_schema select_table", kind="SCHEMA", on="main.hidden")
    return lake


def load(node: DriverNode, *views: tuple[str, ...], user: str = "ana", name: str = "t") -> DriverAnswer:
    """Load a table of the hidden namespace through views."""
    chain = ",".join("%1F".join(levels) for levels in views)
    return node.get(f"{table_path('hidden', name)}?referenced-by={chain}", user=user)


def own(node: DriverNode, kind: str, name: str, user: str, who: str = "USER") -> None:
    """Set the owner of an object."""
    node.done("PUT", f"{API}/lake/owners/{kind}/{name}", {"name": user, "type": who})


def refused(answer: DriverAnswer, word: str) -> None:
    """Check that a load was refused, and that the message has the reason and the missing privilege."""
    status, kind, message = error_of(answer)
    assert (status, kind) == (403, "ForbiddenException"), message
    assert word in message
    assert "SELECT_TABLE" in message


def test_view_lends_what_its_writer_may_load(world: DriverNode) -> None:
    """A reader of a view may read its table with the author's right, only through the view, and no other table."""
    make_view(world, "open", "v", user="bob", version=READS)

    through = load(world, ("open", "v"))

    assert through.status == 200
    assert through.json() == world.done("GET", table_path("hidden", "t"))
    assert world.get(table_path("hidden", "t"), user="ana").status == 403
    refused(load(world, ("open", "v"), name="other"), "the text of view open.v does not name hidden.other")
    assert world.get(f"{table_path('hidden', 't')}?referenced-by=open%1Fv", user=None).status in (401, 403)
    commit = {"updates": [set_properties(k="v")]}
    for query, status in (("", 403), ("?referenced-by=open%1Fv", 400)):  # a change has no such parameter
        assert world.ask("POST", f"{table_path('hidden', 't')}{query}", commit, user="ana").status == status
        assert world.ask("DELETE", f"{table_path('hidden', 't')}{query}", user="ana").status == status


def test_chain_of_three(world: DriverNode) -> None:
    """In a chain of three views, each view is loaded with the right of the previous view's author. The reader needs no
    right on the inner views.
    """
    make_space(world, "inner")
    grant(world, "bob", "use_schema create_view select_view", kind="SCHEMA", on="main.inner")
    make_view(world, "inner", "one", user="bob", version=READS)
    make_view(world, "inner", "two", user="bob", version=view_version("select * from inner.one"))
    make_view(world, "open", "v", user="bob", version=view_version("select * from two", default_namespace=["inner"]))
    chain = (("open", "v"), ("inner", "two"), ("inner", "one"))

    inner = world.get(f"{view_path('inner', 'one')}?referenced-by=open%1Fv,inner%1Ftwo", user="ana")

    assert load(world, *chain).status == 200
    assert inner.status == 200
    assert world.get(view_path("inner", "one"), user="ana").status == 403
    refused(load(world, chain[1], chain[2]), "ana may not load view inner.two")
    refused(load(world, chain[0], chain[2]), "the text of view open.v does not name inner.one")
    refused(load(world, chain[0], chain[1]), "the text of view inner.two does not name hidden.t")
    refused(load(world, *reversed(chain)), "ana may not load view inner.one")


def test_writer_without_the_right_lends_nothing(world: DriverNode) -> None:
    """A view whose author may not read the table gives its readers no right on it."""
    make_view(world, "open", "mine", user="eve", version=READS)

    for user in ("eve", "ana"):
        refused(load(world, ("open", "mine"), user=user), "the author of view open.mine may not load hidden.t")


def test_another_ones_right_cannot_be_borrowed(world: DriverNode) -> None:
    """A view whose text was written by a user other than its owner gives no rights. Neither replacing another user's
    view nor transferring a view to another user uses that user's rights.
    """
    make_view(world, "open", "v", user="bob", version=view_version("select 1 as id"))
    own(world, "SCHEMA", "main.open", "eve")
    rewritten = world.ask("POST", view_path("open", "v"), replaced_by(READS), user="eve")
    make_view(world, "open", "trap", user="eve", version=READS)
    own(world, "VIEW", "main.open.trap", "bob")

    assert rewritten.status == 200
    refused(load(world, ("open", "v")), "the author of view open.v does not own it")
    refused(load(world, ("open", "trap"), user="eve"), "the author of view open.trap does not own it")


def test_owner_takes_over_by_writing_it_again(world: DriverNode) -> None:
    """If the current owner writes the same text again, that owner's rights apply. Changing a property has no such
    effect.
    """
    make_view(world, "open", "v", user="eve", version=READS)
    own(world, "VIEW", "main.open.v", "bob")
    world.ask("POST", view_path("open", "v"), {"updates": [set_properties(k="v")]}, user="bob")
    before = load(world, ("open", "v"))

    again = world.ask("POST", view_path("open", "v"), replaced_by(READS), user="bob")

    refused(before, "the author of view open.v does not own it")
    assert again.status == 200
    assert len(again.json()["metadata"]["versions"]) == 1
    assert load(world, ("open", "v")).status == 200


def test_right_that_was_taken_is_not_lent(world: DriverNode) -> None:
    """An author who lost the right, was disabled or was removed gives no rights from the next request on."""
    make_view(world, "open", "v", user="bob", version=READS)
    found = [load(world, ("open", "v"))]
    world.done("PATCH", "/api/limnos/v1/metalakes/lake/users/bob", {"enabled": False})
    found.append(load(world, ("open", "v")))
    world.done("PATCH", "/api/limnos/v1/metalakes/lake/users/bob", {"enabled": True})
    found.append(load(world, ("open", "v")))
    roles = world.done("GET", f"{API}/lake/users/bob")["user"]["roles"]
    world.done("PUT", f"{API}/lake/permissions/users/bob/revoke", {"roleNames": roles})
    found.append(load(world, ("open", "v")))
    world.done("PUT", f"{API}/lake/permissions/users/bob/grant", {"roleNames": roles})
    found.append(load(world, ("open", "v")))
    world.done("DELETE", f"{API}/lake/users/bob")
    found.append(load(world, ("open", "v")))
    world.done("POST", f"{API}/lake/users", {"name": "bob"})
    world.done("PUT", f"{API}/lake/permissions/users/bob/grant", {"roleNames": roles})
    found.append(load(world, ("open", "v")))

    assert [answer.status for answer in found] == [200, 403, 200, 403, 200, 403, 403]


def test_view_of_a_group(world: DriverNode) -> None:
    """A view owned by a group gives its author's rights while the author is a member of the group."""
    make_view(world, "open", "v", user="bob", version=READS)
    world.done("POST", f"{API}/lake/groups", {"name": "crew"})
    own(world, "VIEW", "main.open.v", "crew", "GROUP")
    outside = load(world, ("open", "v"))

    world.done("POST", "/api/limnos/v1/metalakes/lake/groups/crew/members", {"users": ["bob"]})

    refused(outside, "the author of view open.v does not own it")
    assert load(world, ("open", "v")).status == 200


def test_replaced_text_lends_no_more(world: DriverNode) -> None:
    """A table that only an older version of the view names cannot be read through the view."""
    make_view(world, "open", "v", user="bob", version=READS)
    world.ask("POST", view_path("open", "v"), replaced_by(view_version("select 1 as id")), user="bob")

    refused(load(world, ("open", "v")), "does not name hidden.t")


def test_denial_is_not_lifted(world: DriverNode) -> None:
    """A denial on the table for the reader also applies to loads through views."""
    make_view(world, "open", "v", user="bob", version=READS)
    rules = [{"name": "select_table", "condition": "deny"}]
    objects = [{"fullName": "main.hidden.t", "type": "TABLE", "privileges": rules}]
    world.done("POST", f"{API}/lake/roles", {"name": "no", "properties": {}, "securableObjects": objects})
    world.done("PUT", f"{API}/lake/permissions/users/ana/grant", {"roleNames": ["no"]})
    grant(world, "ana", "use_schema", kind="SCHEMA", on="main.hidden")

    answer = load(world, ("open", "v"))

    assert answer.status == 403
    assert "denied" in error_of(answer)[2]


def test_view_that_is_not_there(world: DriverNode) -> None:
    """A chain with a missing or hidden view, or with a table, is refused with the same message, except for the name."""
    make_view(world, "hidden", "v", version=READS)
    make_table(world, "open", "t")

    hidden, missing = (error_of(load(world, ("hidden", name)))[2] for name in ("v", "gone"))

    assert hidden.replace("hidden.v", "hidden.gone") == missing
    refused(load(world, ("open", "gone")), "view open.gone does not exist")
    refused(load(world, ("open", "t")), "view open.t does not exist")


def test_missing_table_is_told_to_whom_it_would_be_lent(world: DriverNode) -> None:
    """A missing table is 404 only for users who could read it through the view."""
    make_view(world, "open", "v", user="bob", version=view_version("select * from hidden.gone"))

    assert error_of(load(world, ("open", "v"), name="gone")) == (
        404,
        "NoSuchTableException",
        "Table does not exist: hidden.gone",
    )
    assert load(world, name="gone").status == 403


@pytest.mark.parametrize(
    "chain, word",
    [
        ("open%1Fv,open%1Fv", "occurs twice"),
        ("v", "named with its namespace"),
        (",".join(f"open%1Fv{n}" for n in range(11)), "at most 10 links"),
        ("open%1F%ZZ", "%"),
        (",", "empty"),
    ],
)
def test_chains_that_no_view_makes(world: DriverNode, chain: str, word: str) -> None:
    """A chain with a repeated view, a name without a namespace, an invalid escape, or too many views is refused with
    400.
    """
    answer = world.get(f"{table_path('hidden', 't')}?referenced-by={chain}", user="ana")

    assert answer.status == 400
    assert word in error_of(answer)[2]


def test_view_that_reads_itself(world: DriverNode) -> None:
    """A view that names itself gives its readers no new right, and causes no loop."""
    make_view(world, "open", "v", user="bob", version=view_version("select * from open.v"))

    assert world.get(f"{view_path('open', 'v')}?referenced-by=open%1Fv", user="ana").status == 200
    refused(load(world, ("open", "v")), "does not name hidden.t")


def test_commas(world: DriverNode) -> None:
    """Commas in names are percent-encoded. Commas between views may also be, because some clients encode the whole
    value.
    """
    make_view(world, "open", "a,b", user="bob", version=READS)
    make_view(world, "open", "v", user="bob", version=view_version("select * from open.w"))
    make_view(world, "open", "w", user="bob", version=READS)
    grant(world, "bob", "select_view", kind="SCHEMA", on="main.open")

    for chain in ("open%1Fa%2Cb", "open%1Fv,open%1Fw", "open%1Fv%2Copen%1Fw", "open%1Fv%2copen%1fw"):
        answer = world.get(f"{table_path('hidden', 't')}?referenced-by={chain}", user="ana")
        assert answer.status == 200, chain


def test_own_right_needs_no_chain(world: DriverNode) -> None:
    """A user who may load the table needs no right on the views of the chain."""
    assert load(world, ("open", "gone"), user="bob").status == 200


def test_view_moves_with_what_it_lends(world: DriverNode) -> None:
    """A renamed view gives rights only under its new name."""
    make_view(world, "open", "v", user="bob", version=READS)
    ends = {"source": {"namespace": ["open"], "name": "v"}, "destination": {"namespace": ["open"], "name": "w"}}
    renamed = world.ask("POST", f"{ROOT}/views/rename", ends, user="bob")

    assert renamed.status == 204
    assert load(world, ("open", "w")).status == 200
    refused(load(world, ("open", "v")), "does not exist")


def test_large_view_lends_nothing(world: DriverNode) -> None:
    """A text that is too long to analyze gives no rights."""
    world.built.application.body_bytes_max = 16 << 20
    made = world.post(
        f"{space_path('open')}/views",
        view_body("v", view_version(f"select * from hidden.t -- {'x' * 300_000}")),
        user="bob",
    )

    assert made.status == 200
    refused(load(world, ("open", "v")), "too large")


def test_explain_tells_what_is_lent(world: DriverNode) -> None:
    """With a chain, explain says that access is allowed and by which views, or which view of the chain refuses it."""
    make_view(world, "open", "v", user="bob", version=READS)
    question = {"action": "table_load", "path": ["main", "hidden", "t"], "user": "ana"}
    address = "/api/limnos/v1/metalakes/lake/access/explain"

    plain = world.done("POST", address, question)["decision"]
    lent = world.done("POST", address, {**question, "through": [["open", "v"]]})["decision"]
    broken = world.done("POST", address, {**question, "through": [["open", "gone"]]})["decision"]
    other = world.post(address, {**question, "action": "table_drop", "through": [["open", "v"]]})

    assert [each["allowed"] for each in (plain, lent, broken)] == [False, True, False]
    assert [(factor["kind"], factor["object"]["name"]) for factor in lent["factors"]] == [("lent", "main.open.v")]
    assert "definer's rights of view main.open.v" in lent["message"]
    assert "view open.gone does not exist" in broken["message"]
    assert other.status == 400


def test_a_view_that_nobody_lets_one_load_lends_nothing(world: DriverNode) -> None:
    """A user with SELECT_VIEW but without USE_SCHEMA can load no view, alone or in a chain."""
    make_view(world, "open", "v", user="bob", version=READS)
    make_view(world, "open", "w", user="bob", version=view_version("select * from v", default_namespace=["open"]))
    grant(world, "dan", "use_catalog select_view", kind="CATALOG", on="main")

    assert world.get(f"{view_path('open', 'v')}?referenced-by=open%1Fw", user="dan").status == 403
    refused(load(world, ("open", "v"), user="dan"), "dan may not load view open.v")
