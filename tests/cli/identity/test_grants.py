# SPDX-License-Identifier: Apache-2.0
"""The output of `limnos revoke` for roles and privileges that were not granted."""

from __future__ import annotations

import json

import pytest

from limnos.formats.gravitino.policies import MAINTENANCE_TYPES
from tests.cli.conftest import Run
from tests.client.fake import FakeServer

M = "/api/metalakes/lake"
USER = {"name": "ben", "roles": ["r"], "enabled": True}


@pytest.mark.parametrize(
    "words, current_grants, message, missing",
    [
        ("role r --from ben", ("r", "s"), "revoked role r from user ben", None),
        ("role r --from ben", ("s",), "nothing was revoked: user ben did not have r", ["r"]),
        ("role r s --from-group staff", ("s",), "revoked role s from group staff; group staff did not have r", ["r"]),
        (
            "modify_table create_model --on main.raw.t --kind table --from r",
            ("register_model",),
            "revoked create_model on table main.raw.t from role r; role r did not have modify_table",
            ["modify_table"],
        ),
        (
            "modify_table --on main.raw.t --kind table --from r",
            ("select_table",),
            "nothing was revoked: role r did not have modify_table",
            ["modify_table"],
        ),
    ],
)
def test_revoke_reports_what_was_not_granted(  # noqa: PLR0917 - one column per part of the case
    fake: FakeServer, limnos: Run, words: str, current_grants: tuple[str, ...], message: str, missing: list[str] | None
) -> None:
    """Revoking is idempotent, as in Gravitino: the command succeeds, and reports the roles and privileges that were not
    granted.
    """
    rules = [{"name": name, "condition": "allow"} for name in current_grants]
    objects = [{"fullName": "main.raw.t", "type": "table", "privileges": rules}]
    remaining_objects = [{**objects[0], "privileges": [each for each in rules if each["name"] == "select_table"]}]
    fake.on("GET", f"{M}/users/ben", {"user": {**USER, "name": "ben", "roles": current_grants}})
    fake.on("GET", f"{M}/groups/staff", {"group": {"name": "staff", "roles": current_grants}})
    fake.on("GET", f"{M}/roles/r", {"role": {"name": "r", "securableObjects": objects}})
    for path, body in (
        ("users/ben", {"user": {**USER, "roles": []}}),
        ("groups/staff", {"group": {"name": "staff"}}),
        ("roles/r/table/main.raw.t", {"role": {"name": "r", "securableObjects": remaining_objects}}),
    ):
        fake.on("PUT", f"{M}/permissions/{path}/revoke", body)

    done = limnos("revoke", *words.split(), "--output", "table")
    output = json.loads(limnos("revoke", *words.split(), "--output", "json").out)

    assert (done.code, done.out, output.get("missing")) == (0, f"{message}\n", missing)


def test_revoke_names_the_container_with_the_privilege(fake: FakeServer, limnos: Run) -> None:
    """A revocation of a privilege that the role has on a container names the container and the command; objects beside
    the path, and denials, are not named.
    """
    names = [{"name": "select_table", "condition": "allow"}]
    denial = [{"name": "select_table", "condition": "deny"}]
    objects = [
        {"fullName": "main", "type": "catalog", "privileges": denial},
        {"fullName": "main.raw", "type": "schema", "privileges": names},
        {"fullName": "main.rawer", "type": "schema", "privileges": names},
    ]
    role = {"role": {"name": "r", "securableObjects": objects}}
    fake.on("GET", f"{M}/roles/r", role)
    fake.on("PUT", f"{M}/permissions/roles/r/table/main.raw.t/revoke", role)
    fake.on("GET", "/configs", {})

    done = limnos(
        *["revoke", "select_table", "--on", "main.raw.t", "--kind", "table", "--from", "r", "--output", "table"]
    )

    assert done.out == (
        "nothing was revoked: role r did not have select_table; it has select_table on namespace main.raw:"
        " 'limnos revoke select_table --on main.raw --kind namespace --from r'\n"
    )


@pytest.mark.parametrize("holder", ["--to group:staff", "--to-group staff"])
def test_denial_for_a_group_is_answered_with_the_role(fake: FakeServer, limnos: Run, holder: str) -> None:
    """A denial is held by a role: for a group the answer has the commands that create it, deny, and assign it."""
    done = limnos("grant", "select_table", "--on", "main.raw", *holder.split(), "--deny")

    assert done.code == 2
    assert done.error["message"] == "a denial is held by a role, not by a group"
    assert done.error["hint"] == (
        "'limnos create role ROLE', 'limnos grant select_table --on main.raw --to ROLE --deny', then"
        " 'limnos grant role ROLE --to group:staff'"
    )


@pytest.mark.parametrize(
    "typed, hint",
    [
        (
            "access simulate revoke select_table --on main --from user:ben",
            "revoke select_table --on main --from {} --what-if",
        ),
        ("revoke select_table --on main --from user:ben", "revoke select_table --on main --from {}"),
        ("grant select_table --on main --to user:ben", "grant select_table --on main --to {}"),
        ("grant select_table --on main --to user:ben --deny", "grant select_table --on main --to {} --deny"),
    ],
)
def test_privileges_of_a_user_are_answered_with_the_own_role(
    fake: FakeServer, limnos: Run, typed: str, hint: str
) -> None:
    """A user to whom presets gave a role of their own is answered with that role, as `role:user:ben`."""
    fake.on("GET", f"{M}/users/ben", {"user": {**USER, "roles": ["user:ben"]}})

    done = limnos(*typed.split())

    assert done.code == 2
    assert done.error["hint"] == f"'limnos {hint.format('role:user:ben')}': presets gave user ben the role user:ben"


def test_help_of_policies_has_all_types(limnos: Run) -> None:
    """The help of `create policy` names each type of policy that the server knows."""
    text = limnos("create", "policy", "--help").out

    assert [each for each in ("custom", *MAINTENANCE_TYPES) if each not in text.replace("\n", "")] == []
