# SPDX-License-Identifier: Apache-2.0
"""`access explain`: the views through which an object is read."""

from __future__ import annotations

import pytest

from limnos.access.actions import Action
from tests.cli.conftest import Run
from tests.client.fake import FakeServer

ACCESS = "/api/limnos/v1/metalakes/lake/access"
EXPLAIN = "/api/limnos/v1/metalakes/lake/access/explain"
ALLOWED = {"decision": {"allowed": True, "action": "table_load"}, "suggestions": []}
REFUSED = {"decision": {"allowed": False, "action": "table_load"}, "suggestions": []}


@pytest.mark.parametrize("document,code", [(ALLOWED, 0), (REFUSED, 7)])
def test_a_refusal_has_an_exit_code_of_its_own(
    fake: FakeServer, limnos: Run, document: dict[str, object], code: int
) -> None:
    """The exit code of a refused action differs from that of an allowed one. The explanation is printed for both."""
    fake.on("POST", EXPLAIN, document)

    done = limnos("access", "explain", "table_load", "main.raw.t")

    assert done.code == code
    assert isinstance(done.result, dict)
    assert done.result["decision"]["allowed"] is (code == 0)


def test_alternatives_of_a_missing_right_are_no_further_needs(fake: FakeServer, limnos: Run) -> None:
    """In the table of reasons, a right that is enough instead of the one above it has the word `or`."""
    table = {"kind": "table", "name": "main.raw.t"}
    factors = [
        {"kind": "missing", "privilege": "USE_CATALOG", "object": {"kind": "catalog", "name": "main"}, "clause": 0},
        {"kind": "missing", "privilege": "SELECT_TABLE", "object": table, "clause": 1},
        {"kind": "missing", "privilege": "OWNER", "object": table, "clause": 1},
    ]
    fake.on("POST", EXPLAIN, {"decision": {**REFUSED["decision"], "factors": factors}, "suggestions": []})  # type: ignore[dict-item]

    rows = limnos("access", "explain", "table_load", "main.raw.t", "--output", "table").out.splitlines()[-3:]

    assert [row.split()[:2] for row in rows] == [
        ["missing", "USE_CATALOG"],
        ["missing", "SELECT_TABLE"],
        ["or", "OWNER"],
    ]


def test_actions_are_listed_without_a_server(limnos: Run) -> None:
    """Every action is listed with the kinds of objects that it applies to. Without an action or the flag, the hint
    names the flag.
    """
    done = limnos("access", "explain", "--actions")
    nothing = limnos("access", "explain")

    assert isinstance(done.result, list)
    assert {row["action"]: row["kinds"] for row in done.result}["table_load"] == "table"
    assert len(done.result) == len(Action)
    assert nothing.code == 2
    assert "limnos access explain --actions" in str(nothing.error["hint"])


def test_missing_words_are_named_without_a_server(limnos: Run) -> None:
    """A path in place of an action is answered by the commands for that path."""
    explain = limnos("access", "explain", "main.raw.t", "--output", "table")

    assert explain.code == 2
    assert "'limnos access explain table_read main.raw.t'" in explain.err


def test_view_path_outside_the_catalog_is_refused(fake: FakeServer, limnos: Run) -> None:
    """`--through` takes full paths, as every flag. A path outside the catalog is refused before a request is sent, with
    the path that is probably meant.
    """
    fake.on("POST", EXPLAIN, ALLOWED)
    words = ("access", "explain", "table_load", "main.raw.t", "--through", "main.raw.v", "--through")

    assert limnos(*words, "main.raw.w").code == 0
    assert fake.asked[-1].body["through"] == [["raw", "v"], ["raw", "w"]]  # type: ignore[index]
    for other in ("raw.w", "lab.raw.w", "main.w"):
        done = limnos(*words, other)
        assert done.code == 2, other
        assert f"give its full path, as main.{other}" in str(done.error["message"])
    assert len(fake.asked) == 1


EXPLANATION = {
    "decision": {
        "allowed": False,
        "action": "table_load",
        "target": {"id": 5, "kind": "table", "name": "main.raw.t"},
        "user": "ben",
        "factors": [
            {
                "kind": "missing",
                "privilege": "SELECT_TABLE",
                "object": {"id": 5, "kind": "table", "name": "main.raw.t"},
            },
            {"kind": "allow", "privilege": "USE_CATALOG", "object": {"name": "main"}, "role": "r", "group": "staff"},
        ],
        "message": "needs SELECT_TABLE",
    },
    "suggestions": ["grant select_table on main.raw.t to a role of ben"],
}


def test_explain_shows_the_reasons(fake: FakeServer, limnos: Run) -> None:
    """`access explain` shows the decision, the factors, and suggested changes."""
    fake.on("POST", EXPLAIN, EXPLANATION)

    text = limnos("access", "explain", "table_load", "main.raw.t", "--for", "ben", "--output", "table").out
    document = limnos("access", "explain", "table_load", "main.raw.t", "--for", "ben").result

    assert fake.asked[0].body == {"user": "ben", "action": "table_load", "path": ["main", "raw", "t"]}
    assert text.startswith("REFUSED: needs SELECT_TABLE\n")
    assert "what would change it:\n  grant select_table" in text
    assert isinstance(document, dict)
    assert document["decision"]["target"] == "main.raw.t"
    assert document["decision"]["factors"][1] == {
        "kind": "allow",
        "privilege": "USE_CATALOG",
        "object": "main",
        "role": "r",
        "group": "staff",
    }


def test_own_refusal_is_explained_with_the_request_for_access(fake: FakeServer, limnos: Run) -> None:
    """The explanation of one's own refusal says that others may grant what is missing, and has the command that asks
    for it, with the kind of the object.
    """
    target = {"kind": "namespace", "name": "main.raw"}
    lacking = {"kind": "missing", "privilege": "SELECT_TABLE", "object": target, "clause": 1}
    decision = EXPLANATION["decision"] | {"target": target, "factors": [lacking]}  # type: ignore[operator]
    fake.on("POST", EXPLAIN, {"decision": decision, "suggestions": ["Grant SELECT_TABLE on main.raw."]})

    own = limnos("access", "explain", "table_read", "main.raw", "--output", "table").out
    other = limnos("access", "explain", "table_read", "main.raw", "--for", "ben", "--output", "table").out

    assert "what would change it, by a user who may grant it:" in own
    assert "You may ask for it: 'limnos request access main.raw --kind namespace'" in own
    assert "All of it: 'limnos grant --preset reader main.raw --to user:ben'" in other
    assert "request access" not in other


def test_access_of_an_unknown_user_is_not_explained(fake: FakeServer, limnos: Run) -> None:
    """The refusal of a user who is no member says that the user does not exist, and where the users are listed."""
    outside = {"kind": "member", "object": {"kind": "metalake", "name": "lake"}}
    decision = EXPLANATION["decision"] | {"user": "bem", "factors": [outside]}  # type: ignore[operator]
    fake.on("POST", EXPLAIN, {"decision": decision, "suggestions": []})

    done = limnos("access", "explain", "table_load", "main.raw.t", "--for", "bem")

    assert done.error["message"] == "User bem does not exist in this metalake"
    assert "limnos list users" in str(done.error["hint"])


def test_holders_are_listed_over_all_pages(fake: FakeServer, limnos: Run) -> None:
    """Each user is a row with access levels, roles and restrictions. All pages are read."""
    why = [
        {"kind": "allow", "privilege": "SELECT_TABLE", "role": "readers", "object": {"kind": "table", "name": "m.r.t"}}
    ]
    ana = {"user": "ana", "enabled": False, "may": {"read": why}, "restrictions": []}
    eve = {
        "user": "eve",
        "may": {"read": why, "drop": [{"kind": "owner", "object": {"kind": "table", "name": "m.r.t"}}]},
        "restrictions": [{"name": "eu", "object": {"kind": "table", "name": "m.r.t"}}],
    }
    page = {"kind": "table", "asked": ["read", "drop"]}
    first = f"{ACCESS}/holders?path=m.r.t&limit=1000"
    fake.on("GET", first, {**page, "holders": [ana], "after": "ana"})
    fake.on("GET", f"{ACCESS}/holders?path=m.r.t&after=ana&limit=1000", {**page, "holders": [eve]})

    done = limnos("access", "holders", "m.r.t")

    assert done.result == [
        {"user": "ana (disabled)", "may": "read", "through": "readers", "restricted": ""},
        {"user": "eve", "may": "read, drop", "through": "readers, owner of m.r.t", "restricted": "eu"},
    ]


def test_reach_is_listed_or_counted(fake: FakeServer, limnos: Run) -> None:
    """`reach` lists objects with their access levels; with a flag it shows counts only, as `what` does."""
    reach = {
        "user": "ana",
        "counts": {"read": {"table": 2}},
        "objects": [{"kind": "table", "path": ["m", "t"], "may": ["read"], "restricted": True}],
    }
    for limit in (1, 1000):
        fake.on("GET", f"{ACCESS}/reach?path=m&limit={limit}", reach)
    fake.on("GET", f"{ACCESS}/reach?path=m&user=ana&limit=1", reach)

    assert limnos("access", "reach", "m").result == [
        {"path": "m.t", "kind": "table", "may": "read", "restricted": True}
    ]
    assert limnos("access", "reach", "m", "--counts").result == [{"level": "read", "kind": "table", "objects": 2}]
    assert limnos("access", "what", "ana", "m", "--counts").result == [{"level": "read", "kind": "table", "objects": 2}]


@pytest.mark.parametrize(
    "words,change",
    [
        (("grant", "select_table", "--on", "m.r.t", "--kind", "table", "--to", "readers"), "grant"),
        (("revoke", "role", "readers", "--from", "ana"), "unassign"),
    ],
)
def test_grant_and_revoke_with_what_if_change_no_rights(
    fake: FakeServer, limnos: Run, words: tuple[str, ...], change: str
) -> None:
    """With `--what-if`, `grant` and `revoke` request the consequences and change nothing."""
    line = {"level": "read", "kind": "table", "gains": True, "users": 2, "objects": 3}
    fake.on("POST", f"{ACCESS}/what-if", {"users": 2, "gaining": 2, "lines": [line]})

    done = limnos(*words, "--what-if")

    assert isinstance(done.result, dict)
    assert done.result["lines"] == [{**line, "names": []}]
    assert [each.body["change"] for each in fake.asked] == [change]  # type: ignore[index]


def test_short_commands_list_holders_and_reach(fake: FakeServer, limnos: Run) -> None:
    """`access who PATH` lists the holders of an object, `access what USER PATH` the objects of a user."""
    fake.on("GET", f"{ACCESS}/holders?path=main.raw&limit=1000", {"kind": "namespace", "asked": [], "holders": []})
    fake.on("GET", f"{ACCESS}/reach?path=main.raw&user=ana&limit=1000", {"user": "ana"})

    assert limnos("access", "who", "main.raw").code == 0
    assert limnos("access", "what", "ana", "main.raw").code == 0
    assert len(fake.calls) == 2


def test_name_with_dots_is_a_user_or_a_path(fake: FakeServer, limnos: Run) -> None:
    """`access what` takes users whose names have dots. If there is no such user, the word was meant as a path."""
    missing = {"user": "main.raw", "notes": ["There is no user main.raw in this metalake: check the spelling."]}
    fake.on("GET", f"{ACCESS}/reach?user=ana.lee&limit=1000", {"user": "ana.lee"})
    fake.on("GET", f"{ACCESS}/reach?user=main.raw&limit=1000", missing)
    error = {"error": {"code": "not-found", "message": "User main.raw does not exist"}}
    fake.on("GET", f"{ACCESS}/missing?preset=reader&user=main.raw", error, status=404)

    known = limnos("access", "what", "ana.lee")
    paths = [limnos("access", "what", "main.raw", *flags) for flags in ((), ("--missing", "reader"))]

    assert known.code == 0, known.err
    for path in paths:
        assert path.code == 2, path.error
        assert path.error["message"] == "there is no user 'main.raw': it is a path, and 'access what' takes a user"
        assert str(path.error["hint"]).startswith("'limnos access who main.raw' lists its users")


@pytest.mark.parametrize("words", [("who", "main.raw.x"), ("what", "nobody"), ("explain", "table_read", "main.raw.x")])
def test_question_about_a_missing_object_is_refused(fake: FakeServer, limnos: Run, words: tuple[str, ...]) -> None:
    """A question about an object or a user that does not exist has the exit code of missing objects, and no rows."""
    spelling = "check the spelling of the path."
    page = {"kind": "table", "asked": [], "holders": [], "notes": [f"There is no table main.raw.x: {spelling}"]}
    fake.on("GET", f"{ACCESS}/holders?path=main.raw.x&limit=1000", page)
    missing = {"user": "nobody", "notes": [f"There is no user nobody in this metalake: {spelling}"]}
    fake.on("GET", f"{ACCESS}/reach?user=nobody&limit=1000", missing)
    fake.on("POST", EXPLAIN, {**ALLOWED, "suggestions": [f"There is no table main.raw.x: {spelling}"]})

    done = limnos("access", *words)

    assert (done.code, done.out) == (3, "")
    assert "does not exist" in str(done.error["message"])


def test_group_is_no_user_of_access_what(fake: FakeServer, limnos: Run) -> None:
    """The name of a group is answered by the command that shows the group."""
    notes = ["There is no user staff in this metalake: check the spelling of the name."]
    fake.on("GET", f"{ACCESS}/reach?user=staff&limit=1000", {"user": "staff", "notes": notes})
    fake.on("GET", "/api/metalakes/lake/groups/staff", {"group": {"name": "staff"}})

    done = limnos("access", "what", "staff")

    assert done.code == 2
    assert done.error["hint"] == "'limnos show group staff' shows its roles, and 'limnos show role ROLE' their rights"


def test_notes_about_missing_objects_are_printed(fake: FakeServer, limnos: Run) -> None:
    """The server's notes, such as a misspelled path or user, are printed beside the rows."""
    page = {"kind": "table", "asked": [], "holders": [], "notes": ["There is no table main.raw.x: check it."]}
    fake.on("GET", f"{ACCESS}/holders?path=main.raw.x&limit=1000", page)
    fake.on("GET", f"{ACCESS}/reach?user=nobody&limit=1000", {"user": "nobody", "notes": ["There is no user nobody."]})

    assert "There is no table main.raw.x: check it." in limnos("access", "who", "main.raw.x", "--output", "table").err
    assert "There is no user nobody." in limnos("access", "what", "nobody", "--output", "table").err


OWN_LINE = {"level": "read", "kind": "table", "gains": True, "users": 7, "objects": 3, "names": ["ana", "ben"]}


@pytest.mark.parametrize(
    "words,change",
    [
        (("grant", "--preset", "reader", "m.r.t", "--kind", "table", "--to", "user:ana"), "grant"),
        (("revoke", "role", "readers", "--from", "ana"), "unassign"),
        (("revoke", "select_table", "--on", "m.r.t", "--kind", "table", "--from", "readers", "--deny"), "revoke"),
    ],
)
def test_simulate_takes_the_words_of_grant_and_revoke(
    fake: FakeServer, limnos: Run, words: tuple[str, ...], change: str
) -> None:
    """`access simulate` requests the consequence of a change, prints who is affected, and changes nothing."""
    fake.on("POST", f"{ACCESS}/what-if", {"users": 9, "gaining": 7, "lines": [OWN_LINE]})

    done = limnos("access", "simulate", *words, "--output", "table")

    assert [each.body["change"] for each in fake.asked] == [change]  # type: ignore[index]
    assert "7 users would gain and 0 would lose access; nothing was changed" in done.out
    assert "ana, ben and 5 more" in done.out


def test_diff_shows_what_only_one_user_may(fake: FakeServer, limnos: Run) -> None:
    """Each object has the levels that only one user has; where no level differs, the actions; and restrictions."""
    first = {"kind": "table", "path": ["m", "t"], "user": {"may": ["read"], "actions": ["table_scan", "table_load"]}}
    other = {"actions": ["view_create"], "restrictions": ["eu"]}
    page = {"objects": [first], "after": "m.t", "differing": 2, "hidden": 1}
    query = "user=ana&other=ben&path=m"
    fake.on("GET", f"{ACCESS}/diff?{query}&limit=1000", page)
    fake.on(
        "GET",
        f"{ACCESS}/diff?{query}&after=m.t&limit=1000",
        {"objects": [{"kind": "namespace", "path": ["m", "u"], "other": other}], "differing": 2, "hidden": 1},
    )

    done = limnos("access", "diff", "ana", "ben", "--at", "m", "--output", "csv")
    document = limnos("access", "diff", "ana", "ben", "--at", "m").result

    assert done.out.splitlines() == [
        "path,kind,only ana,only ben",
        "m.t,table,read,",
        'm.u,namespace,,"view_create, restricted by eu"',
    ]
    assert "1 differing objects are counted only" in done.err
    assert isinstance(document, list)
    assert document[0]["user"]["actions"] == ["table_scan", "table_load"]


def test_missing_names_the_commands_that_grant_a_preset(fake: FakeServer, limnos: Run) -> None:
    """What a user lacks for a preset is listed with the commands to type: denials are revoked first."""
    denial = {"role": "night shift", "object": {"kind": "namespace", "name": "m.r"}}
    missing = [
        {"privilege": "USE_CATALOG", "object": {"kind": "catalog", "name": "m"}},
        {"privilege": "MODIFY_TABLE", "object": {"kind": "table", "name": "m.r.t"}, "denials": [denial]},
    ]
    answer = {"user": "ana", "kind": "table", "missing": missing, "restrictions": ["eu"]}
    fake.on("GET", f"{ACCESS}/missing?preset=writer&user=ana&path=m.r.t", answer)

    done = limnos("access", "what", "ana", "--at", "m.r.t", "--missing", "writer", "--output", "table")
    document = limnos("access", "what", "ana", "m.r.t", "--missing", "writer").result

    commands = [
        "limnos revoke modify_table --deny --on m.r --kind namespace --from 'role:night shift'",
        "limnos grant --preset writer m.r.t --kind table --to user:ana",
    ]
    assert done.out.endswith("to grant it:\n" + "".join(f"  {command}\n" for command in commands))
    assert "restriction eu applies to ana" in done.err
    assert isinstance(document, dict)
    assert document["commands"] == commands


def test_nothing_is_missing_for_a_preset(fake: FakeServer, limnos: Run) -> None:
    """For a user who has the whole preset the output says so, and no command is printed."""
    fake.on("GET", f"{ACCESS}/missing?preset=admin&user=ana", {"user": "ana", "kind": "metalake"})

    done = limnos("access", "what", "ana", "--missing", "admin", "--output", "table")

    assert "ana has all of admin on metalake lake" in done.out + done.err
    assert "limnos grant" not in done.out


def test_kind_of_a_leaf_is_for_missing_only(limnos: Run) -> None:
    """The objects of a user are listed below catalogs and namespaces, so another kind is refused at once."""
    done = limnos("access", "what", "ana", "m.r.t", "--kind", "table")

    assert done.code == 2
    assert "--missing" in str(done.error["message"])


RESTRICTION = {"kind": "restricted", "privilege": "r", "object": {"kind": "table", "name": "main.raw.t"}}
GAP = {"kind": "missing", "privilege": "SELECT_TABLE", "object": {"kind": "table", "name": "main.raw.t"}}


@pytest.mark.parametrize(
    "factors,word", [([RESTRICTION], "RESTRICTED"), ([GAP], "REFUSED"), ([RESTRICTION, GAP], "REFUSED")]
)
def test_restricted_reads_have_a_verdict_of_their_own(
    fake: FakeServer, limnos: Run, factors: list[dict[str, object]], word: str
) -> None:
    """What nothing but restrictions prevents is RESTRICTED, with exit code 7 as a refusal, and JSON has that word."""
    fake.on(
        "POST", EXPLAIN, {"decision": {"allowed": False, "action": "table_read", "factors": factors}, "suggestions": []}
    )

    done = limnos("access", "explain", "table_read", "main.raw.t", "--output", "table")
    document = limnos("access", "explain", "table_read", "main.raw.t").result

    assert done.code == 7
    assert done.out.startswith(f"{word}: ")
    assert isinstance(document, dict)
    assert document["decision"]["verdict"] == word.lower()


def test_metalake_among_reachable_objects_has_its_name(fake: FakeServer, limnos: Run) -> None:
    """The metalake, whose path is empty, is listed by its name."""
    objects = [{"path": [], "kind": "metalake", "may": ["read"]}]
    fake.on("GET", f"{ACCESS}/reach?user=ana&limit=1000", {"user": "ana", "objects": objects})

    (row,) = limnos("access", "what", "ana").result

    assert row == {"path": "lake", "kind": "metalake", "may": "read", "restricted": False}


def test_access_is_explained_for_users_only(fake: FakeServer, limnos: Run) -> None:
    """`--for user:NAME` is the user; a group is refused with the command that shows who may."""
    fake.on("POST", EXPLAIN, ALLOWED)

    done = limnos("access", "explain", "table_load", "main.raw.t", "--for", "user:ana")
    refused = limnos("access", "explain", "table_load", "main.raw.t", "--for", "group:analysts")

    assert done.code == 0
    assert fake.asked[-1].body["user"] == "ana"  # type: ignore[index]
    assert refused.code == 2
    assert "'limnos access who main.raw.t --action table_load'" in str(refused.error["hint"])


def test_owner_denial_and_restriction_have_commands(fake: FakeServer, limnos: Run) -> None:
    """What would change a refusal has commands: for a missing ownership, a denial and a restriction."""
    table = {"kind": "table", "name": "main.raw.t"}
    factors = [
        {"kind": "missing", "privilege": "OWNER", "object": table, "clause": 0},
        {"kind": "deny", "privilege": "SELECT_TABLE", "object": table, "role": "r", "clause": 1},
        {"kind": "restricted", "privilege": "eu", "object": table, "clause": 2},
    ]
    decision = {"allowed": False, "action": "table_drop", "user": "ben", "factors": factors}
    fake.on("POST", EXPLAIN, {"decision": decision, "suggestions": ["Three steps."]})

    out = limnos("access", "explain", "table_drop", "main.raw.t", "--for", "ben", "--output", "table").out

    assert "  'limnos set owner main.raw.t ben --kind table'\n" in out
    assert "  'limnos revoke select_table --deny --on main.raw.t --kind table --from role:r'\n" in out
    assert "'limnos set restriction eu main.raw.t --except user:ben' answers with the command that" in out
