# SPDX-License-Identifier: Apache-2.0
"""`grant --preset` and `revoke --preset`: the holder, the requests, and the words of the result."""

from __future__ import annotations

import pytest

from tests.cli.conftest import Run
from tests.client.fake import FakeServer

PRESETS = "/api/limnos/v1/metalakes/lake/access/presets"
M = "/api/metalakes/lake"
TABLE = {"privilege": "SELECT_TABLE", "object": {"kind": "table", "name": "main.raw.t"}}
WAY = {"privilege": "USE_CATALOG", "object": {"kind": "catalog", "name": "main"}}
WORDS = ("--preset", "reader", "main.raw.t", "--kind", "table", "--output", "table")


def test_grant_names_the_role_and_each_privilege(fake: FakeServer, limnos: Run) -> None:
    """The output says which role of the user has the privileges now, and on which objects."""
    fake.on("POST", PRESETS, {"role": "user:ana", "created": True, "changed": [TABLE, WAY]})

    done = limnos("grant", *WORDS, "--to", "user:ana")

    assert done.out.splitlines() == [
        "granted reader on table main.raw.t to user ana, by the new role user:ana",
        "  granted SELECT_TABLE on table main.raw.t",
        "  granted USE_CATALOG on catalog main",
    ]
    assert fake.asked[-1].body == {
        "change": "grant",
        "preset": "reader",
        "kind": "table",
        "path": ["main", "raw", "t"],
        "user": "ana",
    }


def test_revoke_names_what_stays(fake: FakeServer, limnos: Run) -> None:
    """The output of a revocation has the privileges that other grants need; without any change it says so."""
    fake.on("POST", PRESETS, {"role": "r", "changed": [TABLE], "unchanged": [WAY]})
    fake.on("POST", PRESETS, {"role": "r"})

    done, again = (limnos("revoke", *WORDS, "--from", "role:r") for _ in range(2))

    assert done.out.splitlines() == [
        "revoked reader on table main.raw.t from role r",
        "  revoked SELECT_TABLE on table main.raw.t",
        "  kept USE_CATALOG on catalog main, which other grants of the role need",
    ]
    assert again.out == "nothing to revoke: role r has none of it\n"


@pytest.mark.parametrize("kind", ["user", "group", "role"])
def test_name_alone_is_the_only_holder_of_that_name(fake: FakeServer, limnos: Run, kind: str) -> None:
    """A name without a kind is the user, group or role that has it."""
    fake.on("GET", f"{M}/{kind}s/x", {kind: {"name": "x"}})
    fake.on("POST", PRESETS, {"role": "x"})

    assert limnos("grant", *WORDS, "--to", "x").code == 0
    assert fake.asked[-1].body[kind] == "x"  # type: ignore[index]


@pytest.mark.parametrize(
    "kinds, message",
    [
        (("user", "role"), "there are a user and a role of this name"),
        ((), "that you may see"),
    ],
)
def test_ambiguous_name_is_refused(fake: FakeServer, limnos: Run, kinds: tuple[str, ...], message: str) -> None:
    """A name that several have, or none, is refused before a change, with the spellings that work."""
    for kind in kinds:
        fake.on("GET", f"{M}/{kind}s/x", {kind: {"name": "x"}})

    done = limnos("grant", *WORDS[:-1], "json", "--to", "x")

    assert done.code == 2
    assert message in str(done.error["message"])
    assert "user:x" in str(done.error["hint"])
    assert not any(call.startswith("POST") for call in fake.calls)


@pytest.mark.parametrize(
    "words, message",
    [
        ("grant --preset reader main.raw.t", "name one holder"),
        ("grant --preset reader main.raw.t --to a --to-group b", "name one holder"),
        ("grant --preset reader --to user:ana", "name one object"),
        ("grant --preset reader main.a main.b --to user:ana", "name one object"),
        ("grant --preset reader main.a --deny --to user:ana", "never denied"),
        ("grant role r --to role:x", "not to a role"),
        (
            "grant select_table --on main.a --to user:ana",
            "'limnos grant select_table --on main.a --to ROLE', then 'limnos grant role ROLE --to user:ana'",
        ),
    ],
)
def test_wrong_command_is_refused_before_a_change(fake: FakeServer, limnos: Run, words: str, message: str) -> None:
    """A command that cannot be meant is refused without a request that changes something."""
    done = limnos(*words.split())

    assert done.code == 2
    assert message in f"{done.error['message']}: {done.error.get('hint')}"
    assert [each for each in fake.asked if each.method != "GET"] == []


def test_kinds_of_holders_are_written_for_roles_too(fake: FakeServer, limnos: Run) -> None:
    """`--to group:staff` gives a role to the group."""
    fake.on("PUT", f"{M}/permissions/groups/staff/grant", {"group": {"name": "staff", "roles": ["r"]}})

    assert limnos("grant", "role", "r", "--to", "group:staff").code == 0


def test_question_about_a_preset_changes_nothing(fake: FakeServer, limnos: Run) -> None:
    """`--what-if` asks for the consequence of the preset alone."""
    fake.on("POST", "/api/limnos/v1/metalakes/lake/access/what-if", {"users": 1, "gaining": 1})

    done = limnos("grant", *WORDS, "--to", "user:ana", "--what-if")

    assert "1 user would gain" in done.out
    assert len(fake.calls) == 1


def test_missing_own_role_has_a_command_as_its_hint(fake: FakeServer, limnos: Run) -> None:
    """A revocation from a user without an own role is refused with the command that shows what the user may do."""
    error = {"code": 1003, "type": "NotFound", "message": "Role user:ana does not exist in metalake lake"}
    fake.on("POST", "/api/limnos/v1/metalakes/lake/access/presets", error, status=404)

    done = limnos(*["revoke", "--preset", "reader", "main.raw.t", "--kind", "table", "--from", "user:ana"])

    assert done.error["hint"] == "'limnos access what ana' shows what there is"
