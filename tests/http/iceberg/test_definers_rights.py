# SPDX-License-Identifier: Apache-2.0
"""Chains of views with definer's rights: the rights that readers get, and attempts to get more."""

from __future__ import annotations

import pytest

from tests.http.driver import API, OWN, DriverAnswer, DriverNode, grant
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


def test_view_gives_readers_the_right_of_its_author(world: DriverNode) -> None:
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


def test_chain_of_three_views_uses_the_right_of_each_author(world: DriverNode) -> None:
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


def test_author_without_the_right_gives_none_to_readers(world: DriverNode) -> None:
    """A view whose author may not read the table gives its readers no right on it."""
    make_view(world, "open", "mine", user="eve", version=READS)

    for user in ("eve", "ana"):
        refused(load(world, ("open", "mine"), user=user), "the author of view open.mine may not load hidden.t")


def test_view_text_by_a_non_owner_gives_no_rights(world: DriverNode) -> None:
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


def test_owner_who_rewrites_the_text_becomes_author(world: DriverNode) -> None:
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


def test_author_who_lost_the_right_gives_none_to_readers(world: DriverNode) -> None:
    """An author who lost the right, was disabled or was removed gives no rights from the next request on."""
    make_view(world, "open", "v", user="bob", version=READS)
    answers = [load(world, ("open", "v"))]
    world.done("PATCH", "/api/limnos/v1/metalakes/lake/users/bob", {"enabled": False})
    answers.append(load(world, ("open", "v")))
    world.done("PATCH", "/api/limnos/v1/metalakes/lake/users/bob", {"enabled": True})
    answers.append(load(world, ("open", "v")))
    roles = world.done("GET", f"{API}/lake/users/bob")["user"]["roles"]
    world.done("PUT", f"{API}/lake/permissions/users/bob/revoke", {"roleNames": roles})
    answers.append(load(world, ("open", "v")))
    world.done("PUT", f"{API}/lake/permissions/users/bob/grant", {"roleNames": roles})
    answers.append(load(world, ("open", "v")))
    world.done("DELETE", f"{API}/lake/users/bob")
    answers.append(load(world, ("open", "v")))
    world.done("POST", f"{API}/lake/users", {"name": "bob"})
    world.done("PUT", f"{API}/lake/permissions/users/bob/grant", {"roleNames": roles})
    answers.append(load(world, ("open", "v")))

    assert [answer.status for answer in answers] == [200, 403, 200, 403, 200, 403, 403]


@pytest.mark.parametrize("disabled", ["bob", "cid"])
def test_disabled_author_gives_no_rights_at_any_link(world: DriverNode, disabled: str) -> None:
    """In a chain of views by two authors, no link is loaded by the right of a disabled author: neither a view nor the
    table, also if a group owns the view. The refusal names the link, and an enabled author gives the right again.
    """
    make_space(world, "inner")
    world.done("POST", f"{API}/lake/users", {"name": "cid"})
    world.done("POST", f"{API}/lake/groups", {"name": "team"})
    world.done("POST", f"{OWN}/metalakes/lake/groups/team/members", {"users": ["cid"]})
    grant(world, "cid", "use_catalog", kind="CATALOG", on="main")
    grant(world, "cid", "use_schema create_view", kind="SCHEMA", on="main.inner")
    grant(world, "cid", "use_schema select_table", kind="SCHEMA", on="main.hidden")
    grant(world, "bob", "use_schema select_view", kind="SCHEMA", on="main.inner")
    make_view(world, "inner", "one", user="cid", version=READS)
    own(world, "VIEW", "main.inner.one", "team", who="GROUP")
    make_view(world, "open", "v", user="bob", version=view_version("select * from inner.one"))
    chain, author = (("open", "v"), ("inner", "one")), {"bob": "open.v", "cid": "inner.one"}[disabled]
    user = f"{OWN}/metalakes/lake/users/{disabled}"
    assert load(world, *chain).status == 200

    world.done("PATCH", user, {"enabled": False})
    refusal = load(world, *chain)
    explained = world.get(view_path("inner", "one") + "?referenced-by=open%1Fv", user="ana").status
    world.done("PATCH", user, {"enabled": True})

    refused(refusal, f"the author of view {author} is no longer a user")
    assert explained == (403 if disabled == "bob" else 200)
    assert load(world, *chain).status == 200


def test_view_of_a_group_needs_membership_of_its_author(world: DriverNode) -> None:
    """A view owned by a group gives its author's rights while the author is a member of the group."""
    make_view(world, "open", "v", user="bob", version=READS)
    world.done("POST", f"{API}/lake/groups", {"name": "crew"})
    own(world, "VIEW", "main.open.v", "crew", "GROUP")
    outside = load(world, ("open", "v"))

    world.done("POST", "/api/limnos/v1/metalakes/lake/groups/crew/members", {"users": ["bob"]})

    refused(outside, "the author of view open.v does not own it")
    assert load(world, ("open", "v")).status == 200


def test_older_view_version_gives_no_rights(world: DriverNode) -> None:
    """A table that only an older version of the view names cannot be read through the view."""
    make_view(world, "open", "v", user="bob", version=READS)
    world.ask("POST", view_path("open", "v"), replaced_by(view_version("select 1 as id")), user="bob")

    refused(load(world, ("open", "v")), "does not name hidden.t")


def test_denial_on_the_table_applies_through_views(world: DriverNode) -> None:
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


def test_missing_and_hidden_views_are_refused_alike(world: DriverNode) -> None:
    """A chain with a missing or hidden view, or with a table, is refused with the same message, except for the name."""
    make_view(world, "hidden", "v", version=READS)
    make_table(world, "open", "t")

    hidden, missing = (error_of(load(world, ("hidden", name)))[2] for name in ("v", "gone"))

    assert hidden.replace("hidden.v", "hidden.gone") == missing
    refused(load(world, ("open", "gone")), "view open.gone does not exist")
    refused(load(world, ("open", "t")), "view open.t does not exist")


def test_missing_table_returns_404_only_to_permitted_readers(world: DriverNode) -> None:
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
def test_invalid_chain_returns_400(world: DriverNode, chain: str, word: str) -> None:
    """A chain with a repeated view, a name without a namespace, an invalid escape, or too many views is refused with
    400.
    """
    answer = world.get(f"{table_path('hidden', 't')}?referenced-by={chain}", user="ana")

    assert answer.status == 400
    assert word in error_of(answer)[2]


def test_self_referencing_view_gives_no_rights(world: DriverNode) -> None:
    """A view that names itself gives its readers no new right, and causes no loop."""
    make_view(world, "open", "v", user="bob", version=view_version("select * from open.v"))

    assert world.get(f"{view_path('open', 'v')}?referenced-by=open%1Fv", user="ana").status == 200
    refused(load(world, ("open", "v")), "does not name hidden.t")


def test_commas_in_chains_are_percent_decoded(world: DriverNode) -> None:
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


def test_caller_with_own_right_needs_no_right_on_views(world: DriverNode) -> None:
    """A user who may load the table needs no right on the views of the chain."""
    assert load(world, ("open", "gone"), user="bob").status == 200


def test_renamed_view_gives_rights_only_under_its_new_name(world: DriverNode) -> None:
    """A renamed view gives rights only under its new name."""
    make_view(world, "open", "v", user="bob", version=READS)
    ends = {"source": {"namespace": ["open"], "name": "v"}, "destination": {"namespace": ["open"], "name": "w"}}
    renamed = world.ask("POST", f"{ROOT}/views/rename", ends, user="bob")

    assert renamed.status == 204
    assert load(world, ("open", "w")).status == 200
    refused(load(world, ("open", "v")), "does not exist")


def test_too_long_view_text_gives_no_rights(world: DriverNode) -> None:
    """A text that is too long to analyze gives no rights."""
    world.built.application.body_bytes_max = 16 << 20
    created = world.post(
        f"{space_path('open')}/views",
        view_body("v", view_version(f"select * from hidden.t -- {'x' * 300_000}")),
        user="bob",
    )

    assert created.status == 200
    refused(load(world, ("open", "v")), "too large")


def test_explain_names_the_views_that_give_or_refuse_access(world: DriverNode) -> None:
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


def test_view_without_use_schema_gives_no_rights(world: DriverNode) -> None:
    """A user with SELECT_VIEW but without USE_SCHEMA can load no view, alone or in a chain."""
    make_view(world, "open", "v", user="bob", version=READS)
    make_view(world, "open", "w", user="bob", version=view_version("select * from v", default_namespace=["open"]))
    grant(world, "dan", "use_catalog select_view", kind="CATALOG", on="main")

    assert world.get(f"{view_path('open', 'v')}?referenced-by=open%1Fw", user="dan").status == 403
    refused(load(world, ("open", "v"), user="dan"), "dan may not load view open.v")
