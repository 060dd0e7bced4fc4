# SPDX-License-Identifier: Apache-2.0
"""`set owner` says what the new owner lacks on the containers above the object."""

from __future__ import annotations

import pytest

from tests.cli.conftest import Run
from tests.client.fake import FakeServer

OWN = "/api/limnos/v1/metalakes/lake"
TABLE = {"kind": "table", "name": "main.raw.t"}
NAMESPACE = {"kind": "namespace", "name": "main.raw"}
CATALOG = {"kind": "catalog", "name": "main"}


@pytest.fixture
def owned(fake: FakeServer) -> FakeServer:
    """A table that gets a new owner."""
    fake.on("PUT", "/api/metalakes/lake/owners/table/main.raw.t", {"set": True})
    return fake


def set_owner(limnos: Run, owner: str) -> str:
    """Set the owner of the table, and return the notes of the command."""
    done = limnos("set", "owner", "main.raw.t", owner, "--kind", "table", "--output", "table")
    assert done.code == 0
    return done.err


def test_user_who_may_not_use_the_containers_is_named_with_the_grant(owned: FakeServer, limnos: Run) -> None:
    """A new owner without the rights to use catalog and namespace is named, with these rights and the preset that
    gives them. What only the table itself has is not missing: its owner has it.
    """
    missing = [
        {"privilege": "SELECT_TABLE", "object": TABLE},
        {"privilege": "USE_SCHEMA", "object": NAMESPACE},
        {"privilege": "USE_CATALOG", "object": CATALOG},
    ]
    url = f"{OWN}/access/missing?preset=reader&user=ben&path=main.raw.t&kind=table"
    owned.on("GET", url, {"user": "ben", "kind": "table", "missing": missing})
    owned.on("GET", url.replace("ben", "ana"), {"user": "ana", "kind": "table", "missing": missing[:1]})

    ben, ana = (set_owner(limnos, each) for each in ("ben", "user:ana"))

    assert ben == (
        "note: user ben has no USE_SCHEMA on namespace main.raw, USE_CATALOG on catalog main, without which owners"
        " cannot reach main.raw.t: 'limnos grant --preset reader main.raw.t --kind table --to user:ben'\n"
    )
    assert ana == ""


def test_group_without_a_role_for_the_containers_is_named(owned: FakeServer, limnos: Run) -> None:
    """The rights of a group are those of its roles; a group that owns the namespace or the catalog lacks none."""
    owners = [
        {"kind": "group", "name": "ops", "object": CATALOG, "inherited": True},
        {"kind": "group", "name": "crew", "object": TABLE, "inherited": False},
    ]
    use = {"privilege": "USE_CATALOG", "condition": "allow", "object": CATALOG, "inherited": True}
    answer = {"kind": "table", "owners": owners, "rules": [use | {"role": "r"}, use | {"role": "other"}]}
    owned.on("GET", f"{OWN}/access/rules?path=main.raw.t&kind=table&after=0&limit=1000", answer)
    for group, roles in (("crew", ["r"]), ("guests", []), ("ops", [])):
        owned.on("GET", f"/api/metalakes/lake/groups/{group}", {"group": {"name": group, "roles": roles}})

    crew, guests, ops = (set_owner(limnos, f"group:{each}") for each in ("crew", "guests", "ops"))

    assert "group crew has no role with USE_SCHEMA on namespace main.raw, without which" in crew
    assert "guests has no role with USE_CATALOG on catalog main, USE_SCHEMA on namespace main.raw, without" in guests
    assert "'limnos grant --preset reader main.raw.t --kind table --to group:guests'" in guests
    assert ops == ""


def test_owner_is_set_without_a_note_if_the_server_does_not_say(owned: FakeServer, limnos: Run) -> None:
    """A caller who may not ask for the rights of others sets the owner without a note."""
    refused = {"error": {"code": "forbidden", "message": "no"}}
    owned.on("GET", f"{OWN}/access/missing?preset=reader&user=ben&path=main.raw.t&kind=table", refused, status=403)

    assert set_owner(limnos, "ben") == ""
