# SPDX-License-Identifier: Apache-2.0
"""Near names of missing users, roles and columns: among those that the caller may list, and never for a deletion."""

from __future__ import annotations

import re

import pytest

from limnos.cli.hints.failed_calls import hint_for
from limnos.cli.hints.typed_command import TypedCommand
from limnos.client.errors import NotFoundError
from tests.cli.conftest import CommandResult, Run
from tests.client.fake import FakeServer

USERS = "/api/metalakes/lake/users"
LISTED = {"code": 0, "users": [{"name": name, "roles": []} for name in ("ana", "annabel", "ben")]}


def missing(fake: FakeServer, *, name: str) -> None:
    """Add a server without a user of a name, whose users the caller may list."""
    fake.on("GET", f"{USERS}?details=true", LISTED)
    text = f"User {name} does not exist in metalake lake"
    body = {"code": 1003, "type": "NoSuchUserException", "message": text}
    fake.on("GET", f"{USERS}/{name}", body, status=404)
    fake.on("DELETE", f"{USERS}/{name}", body, status=404)
    fake.on("PUT", f"/api/metalakes/lake/permissions/users/{name}/grant", body, status=404)


def hint_of(done: CommandResult) -> str:
    """Return the hint of a failed command, without the flags of the connection."""
    return re.sub(r" --uri \S+ --user ana", "", str(done.error["hint"]))


def test_missing_user_leads_to_the_command_with_the_near_one(fake: FakeServer, limnos: Run) -> None:
    """A refused grant to a misspelled user proposes the same grant to the nearest user."""
    missing(fake, name="anna")

    done = limnos("grant", "role", "reader", "--to", "anna")

    assert done.code == 3
    assert hint_of(done).startswith("did you mean 'limnos grant role reader --to ana'? 'limnos list users'")


def test_missing_user_of_a_deletion_leads_to_no_other_deletion(fake: FakeServer, limnos: Run) -> None:
    """A deletion is never proposed for another name: the hint shows the nearest user."""
    missing(fake, name="anna")

    done = limnos("delete", "user", "anna", "--yes")

    assert done.code == 3
    assert "delete" not in hint_of(done)
    assert hint_of(done).startswith("the nearest is ana: 'limnos show user ana' shows it")


def test_caller_who_may_not_list_users_learns_no_name(fake: FakeServer, limnos: Run) -> None:
    """Without the right to list users, the hint has no name of another user."""
    missing(fake, name="anna")
    denied = {"code": 1010, "type": "ForbiddenException", "message": "no"}
    fake.routes.pop(("GET", f"{USERS}?details=true"))
    fake.on("GET", f"{USERS}?details=true", denied, status=403)

    done = limnos("show", "user", "anna")

    assert (done.code, hint_of(done)) == (3, "'limnos list users' lists the existing ones")


@pytest.mark.parametrize(
    "line, hint",
    [
        (
            "lineage up main.raw.trips.totl",
            "did you mean 'limnos show lineage main.raw.trips.total'? 'limnos show main.raw.trips' shows its columns",
        ),
        (
            "lineage down main.raw.trips --column=totl",
            (
                "did you mean 'limnos lineage down main.raw.trips --column=total'? 'limnos show main.raw.trips' shows"
                " its columns"
            ),
        ),
        ("lineage up main.raw.trips", "'limnos show main.raw.trips' shows its columns"),
    ],
)
def test_misspelled_column_leads_to_the_near_one(line: str, hint: str) -> None:
    """The near column is among those that the server's message names, in the place of the typed one."""
    error = NotFoundError("main.raw.trips has no column totl: it has fare, total", status=404, code="not-found")

    assert hint_for(error, TypedCommand(line.split())) == hint
